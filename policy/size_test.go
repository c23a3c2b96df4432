package policy_test

import (
	"errors"
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"gaol/policy"
)

func TestParseSize(t *testing.T) {
	for text, want := range map[string]policy.Size{
		"512MiB": 512 << 20, "512MB": 512 << 20, "512M": 512 << 20, "512m": 512 << 20, "512 MiB": 512 << 20,
		"1GiB": 1 << 30, "64k": 64 << 10, "1024": 1024, "1024b": 1024, "0.5G": 512 << 20, "1.5kb": 1536,
		"2t": 2 << 40, "1": 1, "007": 7, "0.0009765625k": 1, "9223372036854775807": math.MaxInt64, "1.0": 1,
	} {
		if got, err := policy.ParseSize(text); err != nil || got != want {
			t.Errorf("%q is %d, %v; want %d", text, got, err, want)
		}
	}
}

func TestParseSizeRefuses(t *testing.T) {
	for _, text := range []string{
		"", " ", "0", "0G", "0.0M", "-1", "-1G", "+1", "1e400", "1e3", "1_000", "0x10", "1/2", ".5G", "5.", "1.2.3",
		"G", "1GG", "1Gi", "1 Gigabyte", "1P", "1  G", " 1G", "1G ", "1,5G", "0.3", "0.0001k", "inf", "nan", "NaN",
		"9223372036854775808", "8388608T", "99999999999999999999999999999999999999999999", "\u0661", "1\u212a", "1G\x00",
	} {
		if got, err := policy.ParseSize(text); !errors.Is(err, policy.ErrValue) || got != 0 {
			t.Errorf("%q is %d, %v", text, got, err)
		}
	}
}

func TestSizePrints(t *testing.T) {
	for size, want := range map[policy.Size]string{
		1: "1B", 1023: "1023B", 1024: "1KiB", 1536: "1536B", 1536 << 20: "1536MiB", 1 << 30: "1GiB",
		3 << 40: "3TiB", 0: "0B", -1: "-1B", math.MaxInt64: "9223372036854775807B",
	} {
		if got := size.String(); got != want {
			t.Errorf("%d prints as %q, want %q", int64(size), got, want)
		}
	}
}

func TestSizeSurvivesText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := policy.Size(rapid.Int64Range(1, math.MaxInt64).Draw(t, "size") >> rapid.IntRange(0, 62).Draw(t, "shift"))
		if size == 0 {
			return
		}
		if got, err := policy.ParseSize(size.String()); err != nil || got != size {
			t.Fatalf("%d prints as %s, which reads as %d, %v", int64(size), size, got, err)
		}
	})
}

func FuzzSize(f *testing.F) {
	for _, seed := range []string{"512MiB", "0.5G", "1e400", "-1", "64k", "1 Gigabyte", "9223372036854775807", "1\u212a", "1.000000000000000000000001T"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		size, err := policy.ParseSize(text)
		if err != nil {
			if !errors.Is(err, policy.ErrValue) || size != 0 {
				t.Fatalf("%q: %d, %v", text, size, err)
			}
			return
		}
		if again, err := policy.ParseSize(size.String()); size <= 0 || err != nil || again != size {
			t.Fatalf("%q is %d, printed %s, read %d, %v", text, size, size, again, err)
		}
	})
}

func TestParseDuration(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"30s": 30 * time.Second, "1m30s": 90 * time.Second, "30": 30 * time.Second, "250ms": 250 * time.Millisecond,
		"1.5h": 90 * time.Minute, "9223372036": 9223372036 * time.Second,
	} {
		if got, err := policy.ParseDuration(text); err != nil || got.Std() != want {
			t.Errorf("%q is %v, %v; want %v", text, got, err, want)
		}
	}
	for _, text := range []string{
		"", "0", "0s", "-1", "-1s", "1.5", "1e400", "1e400s", "1 s", "1d", "s", "9223372037", "3000000h",
		"99999999999999999999", "inf", "\u0661s", "0.1ns", "1s\x00", "1h1h1h1h1h1h1h1h1h1h1h1h1h1h1h1h1h1h1h1h1h1h1h1h1h1h",
	} {
		if got, err := policy.ParseDuration(text); !errors.Is(err, policy.ErrValue) || got != 0 {
			t.Errorf("%q is %v, %v", text, got, err)
		}
	}
}

func TestDurationPrints(t *testing.T) {
	for span, want := range map[time.Duration]string{
		time.Minute: "1m", time.Hour: "1h", time.Hour + time.Second: "1h0m1s", 90 * time.Minute: "1h30m",
		10 * time.Minute: "10m", 20 * time.Hour: "20h", 30 * time.Second: "30s", time.Millisecond: "1ms", 0: "0s",
	} {
		if got := policy.Duration(span).String(); got != want {
			t.Errorf("%v prints as %q, want %q", span, got, want)
		}
	}
}

func FuzzDuration(f *testing.F) {
	for _, seed := range []string{"30s", "1m30s", "30", "0", "-1s", "1e400", "1h0m0.000000001s", "9223372036", "10m", "2562047h47m16.854775807s"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		span, err := policy.ParseDuration(text)
		if err != nil {
			if !errors.Is(err, policy.ErrValue) || span != 0 {
				t.Fatalf("%q: %v, %v", text, span, err)
			}
			return
		}
		if again, err := policy.ParseDuration(span.String()); span <= 0 || err != nil || again != span {
			t.Fatalf("%q is %d, printed %s, read %d, %v", text, span, span, again, err)
		}
	})
}
