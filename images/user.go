package images

import (
	"bufio"
	"bytes"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// gaolUser is who runs an image that names nobody, or root.
const gaolUser = 1000

var (
	decimal  = regexp.MustCompile(`^[0-9]+$`)
	userName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.-]*\$?$`)
)

// parseID reads a user or group number. What is not only digits, or wraps to
// another number in the kernel's 32 bits, is no number.
func parseID(s string) (uint32, error) {
	n, err := strconv.ParseUint(s, 10, 32)
	if err != nil || !decimal.MatchString(s) {
		return 0, fmt.Errorf("%w: user or group %q is not a number below 4294967295", ErrInvalid, s)
	}
	if n == 1<<32-1 { // the kernel's "no change"
		return 0, fmt.Errorf("%w: user or group %q is not a number below 4294967295", ErrInvalid, s)
	}
	return uint32(n), nil
}

// checkUser judges a USER by its form alone, before anything is unpacked.
func checkUser(user string) error {
	if user == "" {
		return nil
	}
	name, group, grouped := strings.Cut(user, ":")
	parts := []string{name}
	if grouped {
		parts = append(parts, group)
	}
	for _, part := range parts {
		if userName.MatchString(part) {
			continue
		}
		if _, err := parseID(part); err != nil {
			return err
		}
	}
	return nil
}

// resolveUser finds the ids of "user", "uid", "user:group" and so on in the
// image's own passwd and group files. A number without an entry has group 0,
// as elsewhere. root tells that the image wanted uid 0, or said nothing: such
// an image runs as 1000:1000.
func resolveUser(user string, passwd, group []byte) (uid, gid uint32, root bool, err error) {
	if err := checkUser(user); err != nil {
		return 0, 0, false, err
	}
	name, groupName, grouped := strings.Cut(user, ":")
	if name == "" {
		return gaolUser, gaolUser, true, nil
	}
	if decimal.MatchString(name) {
		if uid, err = parseID(name); err != nil {
			return 0, 0, false, err
		}
		if fields := lookup(passwd, 2, name); fields != nil {
			if gid, err = parseID(fields[3]); err != nil {
				return 0, 0, false, err
			}
		}
	} else {
		fields := lookup(passwd, 0, name)
		if fields == nil {
			return 0, 0, false, fmt.Errorf("%w: user %q is not in the image's /etc/passwd", ErrInvalid, name)
		}
		if uid, err = parseID(fields[2]); err != nil {
			return 0, 0, false, err
		}
		if gid, err = parseID(fields[3]); err != nil {
			return 0, 0, false, err
		}
	}
	if grouped {
		if gid, err = resolveGroup(groupName, group); err != nil {
			return 0, 0, false, err
		}
	}
	if uid == 0 {
		return gaolUser, gaolUser, true, nil
	}
	return uid, gid, false, nil
}

func resolveGroup(name string, group []byte) (uint32, error) {
	if decimal.MatchString(name) {
		return parseID(name)
	}
	fields := lookup(group, 0, name)
	if fields == nil {
		return 0, fmt.Errorf("%w: group %q is not in the image's /etc/group", ErrInvalid, name)
	}
	return parseID(fields[2])
}

// lookup gives the first line whose column reads value, at least four fields.
func lookup(file []byte, column int, value string) []string {
	lines := bufio.NewScanner(bytes.NewReader(file))
	for lines.Scan() {
		fields := strings.Split(lines.Text(), ":")
		if len(fields) >= 4 && fields[column] == value {
			return fields
		}
	}
	return nil
}
