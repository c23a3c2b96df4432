package images

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/distribution/reference"
	digest "github.com/opencontainers/go-digest"
)

// parseReference reads "name", "name:tag", "registry/name:tag" and any of
// them with "@sha256:…", which pins the manifest. It gives the one spelling
// under which the store keeps the name: the shortest, without ":latest".
func parseReference(ref string) (name string, pin digest.Digest, err error) {
	named, err := reference.ParseNormalizedNamed(ref)
	if err != nil {
		return "", "", fmt.Errorf("%w %q: %w", ErrReference, ref, err)
	}
	if digested, ok := named.(reference.Digested); ok {
		pin = digested.Digest()
		if err := checkDigest(pin); err != nil {
			return "", "", fmt.Errorf("%w %q: %w", ErrReference, ref, err)
		}
	}
	if tagged, ok := named.(reference.Tagged); ok {
		named, err = reference.WithTag(reference.TrimNamed(named), tagged.Tag())
		if err != nil {
			return "", "", fmt.Errorf("%w %q: %w", ErrReference, ref, err)
		}
	} else {
		named = reference.TrimNamed(named)
	}
	return strings.TrimSuffix(reference.FamiliarString(named), ":latest"), pin, nil
}

// checkDigest accepts sha256 in lower-case hex, the one form of digest that
// may become part of a path.
func checkDigest(d digest.Digest) error {
	if err := d.Validate(); err != nil {
		return fmt.Errorf("%w: digest %q: %w", ErrInvalid, string(d), err)
	}
	if d.Algorithm() != digest.SHA256 {
		return fmt.Errorf("%w: digest %q: only sha256 is supported", ErrInvalid, string(d))
	}
	return nil
}

// recordName is the file name of a reference's record. A hash, since a
// reference may be longer than a file name and holds slashes.
func recordName(name string) string {
	sum := sha256.Sum256([]byte(name))
	return hex.EncodeToString(sum[:]) + ".json"
}
