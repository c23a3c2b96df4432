package policy

import (
	"fmt"
	"math/big"
	"strconv"
	"strings"
)

// Size is a number of bytes, always positive in a valid policy.
//
// Its text is a number and a unit: B, K, M, G or T, in either case, alone or
// followed by B or iB, after at most one space. As with docker's memory flags
// every form of a unit means the same power of 1024, so that 512M, 512MB and
// 512MiB are equal. A number alone counts bytes. A decimal fraction is fine as
// long as it comes to a whole number of bytes ("0.5G").
type Size int64

// Units of Size.
const (
	KiB Size = 1 << 10
	MiB Size = 1 << 20
	GiB Size = 1 << 30
	TiB Size = 1 << 40
)

var sizeUnits = []struct {
	letter byte
	bytes  Size
}{{'t', TiB}, {'g', GiB}, {'m', MiB}, {'k', KiB}}

// maxNumberText bounds the digits handed to exact arithmetic.
const maxNumberText = 40

// ParseSize reads the text form of a Size. The error is ErrValue for anything
// that is not a positive whole number of bytes below 2^63.
func ParseSize(text string) (Size, error) {
	number, unit := splitUnit(text)
	if len(text) > maxNumberText || !isDecimal(number) {
		return 0, fmt.Errorf("%w: size %.50q: want a number and a unit, such as \"512MiB\"", ErrValue, text)
	}
	value, ok := new(big.Rat).SetString(number)
	if !ok {
		return 0, fmt.Errorf("%w: size %.50q: not a number", ErrValue, text)
	}
	value.Mul(value, new(big.Rat).SetInt64(int64(unit)))
	switch {
	case !value.IsInt():
		return 0, fmt.Errorf("%w: size %q: a fraction of a byte", ErrValue, text)
	case value.Sign() == 0:
		return 0, fmt.Errorf("%w: size %q: zero does not mean unlimited; leave the key out for the default", ErrValue, text)
	case !value.Num().IsInt64():
		return 0, fmt.Errorf("%w: size %q: too large", ErrValue, text)
	}
	return Size(value.Num().Int64()), nil
}

// splitUnit parts "1.5 GiB" into "1.5" and GiB.
func splitUnit(text string) (number string, unit Size) {
	lower := strings.ToLower(text)
	if len(lower) != len(text) { // a letter outside ASCII that folds into it
		return text, 1
	}
	for _, u := range sizeUnits {
		for _, suffix := range []string{"ib", "b", ""} {
			if head, ok := strings.CutSuffix(lower, string(u.letter)+suffix); ok {
				return strings.TrimSuffix(head, " "), u.bytes
			}
		}
	}
	if head, ok := strings.CutSuffix(lower, "b"); ok {
		return strings.TrimSuffix(head, " "), 1
	}
	return lower, 1
}

// isDecimal reports digits with at most one point between them.
func isDecimal(s string) bool {
	whole, fraction, point := strings.Cut(s, ".")
	return isDigits(whole) && (!point || isDigits(fraction))
}

func isDigits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}

// String prints the whole number of the largest unit that holds the size
// exactly, such as "1536MiB" or "1025B".
func (s Size) String() string {
	for _, u := range sizeUnits {
		if s != 0 && s%u.bytes == 0 {
			return strconv.FormatInt(int64(s/u.bytes), 10) + strings.ToUpper(string(u.letter)) + "iB"
		}
	}
	return strconv.FormatInt(int64(s), 10) + "B"
}

// MarshalText is String.
func (s Size) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText is ParseSize.
func (s *Size) UnmarshalText(text []byte) error {
	parsed, err := ParseSize(string(text))
	if err == nil {
		*s = parsed
	}
	return err
}
