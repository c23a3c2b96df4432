package runtime

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// Whatever comes in whatever pieces: the first and last bytes are kept, the
// count is exact, tee sees all of it, and the limit is told of once.
func TestCaptureProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pieces := rapid.SliceOf(rapid.SliceOfN(rapid.Byte(), 0, 300)).Draw(t, "pieces")
		keep := rapid.IntRange(2, 200).Draw(t, "keep")
		limit := rapid.Int64Range(0, 2000).Draw(t, "limit")
		var tee bytes.Buffer
		over := 0
		c := capture{keep: keep, limit: limit, over: func() { over++ }, tee: &tee, hold: []byte("nonce")}
		for _, p := range pieces {
			if len(p) > 0 {
				c.add(p)
			}
		}
		c.finish()
		all := bytes.Join(pieces, nil)
		if c.out.Total != int64(len(all)) || !bytes.Equal(tee.Bytes(), all) {
			t.Fatalf("total %d, tee %q, want %d %q", c.out.Total, tee.Bytes(), len(all), all)
		}
		if want := int64(len(all)) > limit; (over == 1) != want || over > 1 {
			t.Fatalf("told %d times of %d bytes over %d", over, len(all), limit)
		}
		if !bytes.HasPrefix(all, c.out.Head) || !bytes.HasSuffix(all, c.out.Tail) {
			t.Fatalf("head %q and tail %q are not those of %q", c.out.Head, c.out.Tail, all)
		}
		if kept := len(c.out.Head) + len(c.out.Tail); kept != min(keep, len(all)) {
			t.Fatalf("kept %d of %d bytes, may keep %d", kept, len(all), keep)
		}
	})
}

func TestOutputUTF8(t *testing.T) {
	whole := []byte("aé漢🎈")
	for cut := range whole {
		o := Output{Head: whole[:cut], Tail: whole[cut:], Total: int64(len(whole)) + 1}
		if !o.UTF8() {
			t.Errorf("cut at %d: a rune that the cap cut counts as broken", cut)
		}
		head, tail := o.TextParts()
		if strings.ToValidUTF8(head+tail, "?") != head+tail {
			t.Errorf("cut at %d: parts %q and %q are no text", cut, head, tail)
		}
	}
	for _, bad := range []string{"\xff", "a\xc3", "\xed\xa0\x80"} {
		if (Output{Head: []byte(bad), Total: int64(len(bad))}).UTF8() {
			t.Errorf("%q counts as text", bad)
		}
	}
}

// A denial is believed only behind the frame's own mark.
func TestDenialNeedsTheNonce(t *testing.T) {
	f, err := newFrame(&Code{Name: "x.py", Source: []byte("pass")}, []string{"socket"})
	if err != nil {
		t.Fatal(err)
	}
	body, err := json.Marshal(Denial{Rule: "socket", Module: "socket", Line: 3, Column: 1})
	if err != nil {
		t.Fatal(err)
	}
	if d := f.denial(append(bytes.Clone(f.nonce), body...)); d == nil || d.Line != 3 {
		t.Errorf("a true denial reads as %v", d)
	}
	for name, stderr := range map[string][]byte{
		"no mark":    body,
		"zero mark":  append(make([]byte, nonceSize), body...),
		"mark later": append([]byte("x"), append(bytes.Clone(f.nonce), body...)...),
		"no JSON":    append(bytes.Clone(f.nonce), "oops"...),
		"nothing":    nil,
	} {
		if d := f.denial(stderr); d != nil {
			t.Errorf("%s: believed %v", name, d)
		}
	}
	if d := (frame{}).denial(body); d != nil {
		t.Errorf("a command without a guest: believed %v", d)
	}
}
