package springtest

import (
	"crypto/md5" //nolint:gosec // Not for security: what UUID.nameUUIDFromBytes does.
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// uuidForm is what the UUIDConverter takes for a UUID since 6.0.
var uuidForm = regexp.MustCompile(`^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$`)

// Key is the LOCK_KEY of the lock of that name.
func (g Generation) Key(name string) string {
	if uuidForm.MatchString(name) {
		return strings.ToLower(name)
	}
	if id, ok := lenient(name); ok && g == Spring5 {
		return id
	}
	h := md5.Sum([]byte(name)) //nolint:gosec // See the import.
	h[6] = h[6]&0x0f | 0x30
	h[8] = h[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", h[:4], h[4:6], h[6:8], h[8:10], h[10:])
}

// lenient reads a name as UUID.fromString does, which the UUIDConverter asked
// first up to 5.5: five hexadecimal numbers with dashes between, of any length.
// What is too large for its place is cut off on the left.
func lenient(name string) (string, bool) {
	parts := strings.Split(name, "-")
	if len(parts) != 5 || len(name) > 36 {
		return "", false
	}
	var numbers [5]uint64
	for i, part := range parts {
		n, err := strconv.ParseInt(part, 16, 64)
		if err != nil || part[0] == '-' {
			return "", false
		}
		numbers[i] = uint64(n) //nolint:gosec // Java masks them likewise.
	}
	return fmt.Sprintf("%08x-%04x-%04x-%04x-%012x", numbers[0]&0xffffffff, numbers[1]&0xffff,
		numbers[2]&0xffff, numbers[3]&0xffff, numbers[4]&0xffffffffffff), true
}
