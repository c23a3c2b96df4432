package policy

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Duration is a span of time, always positive in a valid policy.
//
// Its text is Go's: "30s", "1m30s", "250ms". A whole number alone counts
// seconds.
type Duration time.Duration

// ParseDuration reads the text form of a Duration. The error is ErrValue for
// anything that is not a positive span below 292 years.
func ParseDuration(text string) (Duration, error) {
	if len(text) > maxNumberText {
		return 0, fmt.Errorf("%w: duration %.50q: too long", ErrValue, text)
	}
	if isDigits(text) {
		return wholeSeconds(text)
	}
	span, err := time.ParseDuration(text)
	if err != nil {
		return 0, fmt.Errorf("%w: duration %q: want a number and a unit, such as \"90s\" or \"1m30s\"", ErrValue, text)
	}
	return positive(span, text)
}

func wholeSeconds(text string) (Duration, error) {
	seconds, err := strconv.ParseInt(text, 10, 64)
	if err != nil || seconds > math.MaxInt64/int64(time.Second) {
		return 0, fmt.Errorf("%w: duration %q: too long", ErrValue, text)
	}
	return positive(time.Duration(seconds)*time.Second, text)
}

func positive(span time.Duration, text string) (Duration, error) {
	if span <= 0 {
		return 0, fmt.Errorf("%w: duration %q: must be above zero; zero does not mean unlimited", ErrValue, text)
	}
	return Duration(span), nil
}

// Std is the same span as the standard library's type.
func (d Duration) Std() time.Duration { return time.Duration(d) }

// String prints the span as ParseDuration reads it, without trailing zero
// units: "1m", not "1m0s".
func (d Duration) String() string {
	text := d.Std().String()
	if head, ok := strings.CutSuffix(text, "m0s"); ok {
		text = head + "m"
	}
	if head, ok := strings.CutSuffix(text, "h0m"); ok {
		text = head + "h"
	}
	return text
}

// MarshalText is String.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText is ParseDuration.
func (d *Duration) UnmarshalText(text []byte) error {
	parsed, err := ParseDuration(string(text))
	if err == nil {
		*d = parsed
	}
	return err
}
