package lockdb

import (
	"crypto/md5" //nolint:gosec // Not for security: the format of Spring's UUIDConverter.

	"github.com/google/uuid"
)

// KeyFormat says how a lock's name becomes the key of its row.
type KeyFormat string

const (
	// KeyPlain keeps names of up to 36 bytes as they are, readable in the
	// table, and hashes longer ones as [KeySpring] does.
	KeyPlain KeyFormat = "plain"
	// KeySpring hashes every name as Spring Integration's UUIDConverter does,
	// so that Go and Java nodes meet on one row.
	KeySpring KeyFormat = "spring"
)

// maxKey is the width of INT_LOCK.LOCK_KEY.
const maxKey = 36

// RowKey returns the key of the row for a lock of any key.
func RowKey(key string) string { return Key(KeyPlain, key) }

// Key returns the key of the row for the lock of that name.
func Key(format KeyFormat, name string) string {
	if format != KeySpring && len(name) <= maxKey {
		return name
	}
	return springKey(name)
}

// springKey follows org.springframework.integration.util.UUIDConverter: a name
// in the form of a UUID stays one, in lower case; any other becomes the MD5 of
// its bytes as a version 3 UUID, without a namespace.
func springKey(name string) string {
	if len(name) == maxKey {
		if id, err := uuid.Parse(name); err == nil {
			return id.String()
		}
	}
	id := uuid.UUID(md5.Sum([]byte(name))) //nolint:gosec // See the import.
	id[6] = id[6]&0x0f | 0x30
	id[8] = id[8]&0x3f | 0x80
	return id.String()
}
