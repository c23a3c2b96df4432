package images

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// freeForm are the objects whose keys are the author's own words; elsewhere
// two keys that differ only in case would name the same field.
var freeForm = []string{"labels", "annotations", "volumes", "exposedports"}

// jsonDepth is deeper than any index, manifest or config goes.
const jsonDepth = 32

// decodeJSON reads outside JSON into v. Unknown keys are fine, since formats
// grow; what could be read in two ways is not: a key given twice, a second
// document, and nesting without end.
func decodeJSON(data []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	if err := scanValue(d, "", 0); err != nil {
		return fmt.Errorf("%w: json: %w", ErrInvalid, err)
	}
	if _, err := d.Token(); err != io.EOF {
		return fmt.Errorf("%w: json: data after the document", ErrInvalid)
	}
	if err := json.Unmarshal(data, v); err != nil {
		return fmt.Errorf("%w: json: %w", ErrInvalid, err)
	}
	return nil
}

// scanValue walks over one value that stands under key.
func scanValue(d *json.Decoder, key string, depth int) error {
	if depth > jsonDepth {
		return fmt.Errorf("more than %d levels", jsonDepth)
	}
	token, err := d.Token()
	if err != nil {
		return err
	}
	switch token {
	case json.Delim('{'):
		return scanObject(d, key, depth)
	case json.Delim('['):
		for d.More() {
			if err := scanValue(d, key, depth+1); err != nil {
				return err
			}
		}
		_, err = d.Token()
		return err
	}
	return nil
}

func scanObject(d *json.Decoder, key string, depth int) error {
	exact := slices.Contains(freeForm, strings.ToLower(key))
	seen := make(map[string]bool)
	for d.More() {
		token, err := d.Token()
		if err != nil {
			return err
		}
		name, ok := token.(string)
		if !ok {
			return errors.New("key is not a string")
		}
		folded := name
		if !exact {
			folded = strings.ToLower(name)
		}
		if seen[folded] {
			return fmt.Errorf("key %q is given twice", name)
		}
		seen[folded] = true
		if err := scanValue(d, name, depth+1); err != nil {
			return err
		}
	}
	_, err := d.Token()
	return err
}
