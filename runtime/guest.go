package runtime

import (
	"bytes"
	"crypto/rand"
	_ "embed"
	"encoding/binary"
	"encoding/json"
	"fmt"
)

//go:embed guest.py
var guestProgram string

// deniedExit is the guest's exit code when the advice check refused the code.
const deniedExit = 126

const nonceSize = 32

// frame is what the guest reads from its standard input before the program's
// own input. The nonce marks a denial as the guest's word: the guest forgets
// it before the program starts.
type frame struct {
	nonce []byte
	data  []byte
}

func newFrame(code *Code, denyImports []string) (frame, error) {
	nonce := make([]byte, nonceSize)
	if _, err := rand.Read(nonce); err != nil {
		return frame{}, fmt.Errorf("read random bytes: %w", err)
	}
	args := code.Args
	if args == nil {
		args = []string{}
	}
	head, err := json.Marshal(struct {
		Name        string   `json:"name"`
		Args        []string `json:"args"`
		Size        int      `json:"size"`
		DenyImports []string `json:"deny_imports,omitempty"`
	}{code.Name, args, len(code.Source), denyImports})
	if err != nil {
		return frame{}, fmt.Errorf("encode the code's header: %w", err)
	}
	data := make([]byte, 0, nonceSize+4+len(head)+len(code.Source))
	data = append(data, nonce...)
	data = binary.BigEndian.AppendUint32(data, uint32(len(head)))
	data = append(data, head...)
	data = append(data, code.Source...)
	return frame{nonce: nonce, data: data}, nil
}

// denial reads the guest's denial from the start of stderr, nil when there is
// none: then whatever stands there is the program's.
func (f frame) denial(stderr []byte) *Denial {
	rest, ok := bytes.CutPrefix(stderr, f.nonce)
	if !ok || len(f.nonce) == 0 {
		return nil
	}
	var d Denial
	if json.Unmarshal(rest, &d) != nil {
		return nil
	}
	return &d
}
