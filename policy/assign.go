package policy

import (
	"encoding"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// assigner copies a decoded TOML tree into Go values, by the letter. The TOML
// library's own decoder matches keys regardless of case and turns floats and
// booleans into text, which would give a policy more than one spelling.
type assigner struct {
	root     reflect.Type
	problems []*Error
}

// assign fills the struct that into points to and tells what did not fit.
func assign(tree map[string]any, into any) []*Error {
	dst := reflect.ValueOf(into)
	if dst.Kind() != reflect.Pointer || dst.IsNil() || dst.Elem().Kind() != reflect.Struct {
		return []*Error{{Err: fmt.Errorf("decode into %T: want a pointer to a struct", into)}}
	}
	a := &assigner{root: dst.Elem().Type()}
	a.table("", tree, dst.Elem())
	return a.problems
}

func (a *assigner) fail(key string, class error, format string, args ...any) {
	a.problems = append(a.problems, &Error{Key: key, Err: fmt.Errorf("%w: %s", class, fmt.Sprintf(format, args...))})
}

func (a *assigner) mismatch(key, want string, got any) {
	a.fail(key, ErrValue, "want %s, got %s", want, tomlType(got))
}

func (a *assigner) table(key string, tree map[string]any, dst reflect.Value) {
	fields := structFields(dst.Type())
	for _, name := range slices.Sorted(maps.Keys(tree)) {
		full := joinKey(key, name)
		if index, ok := fields[name]; ok {
			a.value(full, tree[name], dst.FieldByIndex(index))
			continue
		}
		a.problems = append(a.problems, &Error{
			Key: full, Err: fmt.Errorf("%w%s", ErrUnknownKey, a.suggest(name, fields)),
		})
	}
}

// suggest looks for a near name in the same table, then in all tables.
func (a *assigner) suggest(name string, fields map[string][]int) string {
	if best, ok := nearest(name, slices.Sorted(maps.Keys(fields))); ok {
		return fmt.Sprintf(": did you mean %q?", best)
	}
	for _, table := range slices.Sorted(maps.Keys(structFields(a.root))) {
		inner := a.root.FieldByIndex(structFields(a.root)[table]).Type
		if inner.Kind() != reflect.Struct {
			continue
		}
		if best, ok := nearest(name, slices.Sorted(maps.Keys(structFields(inner)))); ok {
			return fmt.Sprintf(": did you mean %q in [%s]?", best, table)
		}
	}
	return ": known here: " + strings.Join(slices.Sorted(maps.Keys(fields)), " ")
}

func (a *assigner) value(key string, src any, dst reflect.Value) {
	if dst.Kind() == reflect.Pointer {
		dst.Set(reflect.New(dst.Type().Elem()))
		dst = dst.Elem()
	}
	if reader, ok := dst.Addr().Interface().(encoding.TextUnmarshaler); ok {
		a.text(key, src, reader)
		return
	}
	switch dst.Kind() {
	case reflect.Struct:
		if tree, ok := src.(map[string]any); ok {
			a.table(key, tree, dst)
		} else {
			a.mismatch(key, "a table", src)
		}
	case reflect.Slice:
		a.list(key, src, dst)
	default:
		a.scalar(key, src, dst)
	}
}

func (a *assigner) text(key string, src any, dst encoding.TextUnmarshaler) {
	var text string
	switch v := src.(type) {
	case string:
		text = v
	case int64:
		text = strconv.FormatInt(v, 10)
	default:
		a.mismatch(key, "a string or a whole number", src)
		return
	}
	if err := dst.UnmarshalText([]byte(text)); err != nil {
		a.problems = append(a.problems, &Error{Key: key, Err: err})
	}
}

func (a *assigner) list(key string, src any, dst reflect.Value) {
	items := reflect.ValueOf(src)
	if items.Kind() != reflect.Slice {
		a.mismatch(key, "a list", src)
		return
	}
	out := reflect.MakeSlice(dst.Type(), items.Len(), items.Len())
	for i := range items.Len() {
		a.value(key, items.Index(i).Interface(), out.Index(i))
	}
	dst.Set(out)
}

func (a *assigner) scalar(key string, src any, dst reflect.Value) {
	switch v := src.(type) {
	case string:
		if dst.Kind() == reflect.String {
			dst.SetString(v)
			return
		}
	case bool:
		if dst.Kind() == reflect.Bool {
			dst.SetBool(v)
			return
		}
	case float64:
		if dst.CanFloat() {
			dst.SetFloat(v)
			return
		}
	case int64:
		switch {
		case dst.CanFloat():
			dst.SetFloat(float64(v))
			return
		case dst.CanInt() && !dst.OverflowInt(v):
			dst.SetInt(v)
			return
		}
	}
	a.mismatch(key, goType(dst.Kind()), src)
}

// structFields maps the keys of a struct to its fields, embedded ones
// included.
func structFields(t reflect.Type) map[string][]int {
	fields := map[string][]int{}
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("toml"), ",")
		if name == "-" || !f.IsExported() || f.Anonymous && name == "" {
			continue
		}
		if name == "" {
			name = f.Name
		}
		fields[name] = f.Index
	}
	return fields
}

func goType(k reflect.Kind) string {
	switch k {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Float32, reflect.Float64:
		return "a number"
	}
	return "a whole number"
}

func tomlType(v any) string {
	switch v := v.(type) {
	case string:
		return "a string"
	case bool:
		return strconv.FormatBool(v)
	case int64:
		return strconv.FormatInt(v, 10)
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64)
	case map[string]any:
		return "a table"
	case []any, []map[string]any:
		return "a list"
	}
	return "a date"
}
