package config

import (
	"maps"
	"slices"
	"strings"

	"github.com/observerd/observerd/internal/config/field"
)

// leastHashKey is the length of an HMAC-SHA-256: a shorter key would be the weaker part.
const leastHashKey = 32

// checkRedact checks what becomes of columns, and reads the key by which they are hashed.
// Whether there is such a column the source decides.
func (c observerChecker) checkRedact(path string, o *Observer) {
	key := path + ".redact"
	if c.IsSet(key) && len(o.Redact) == 0 && c.OK(key) {
		c.Reject(key, "redact names no column; set one, as in {email: hash}, or remove the key")
	}
	names := slices.Sorted(maps.Keys(o.Redact))
	hashes := false
	for i, name := range names {
		at := join(key, name)
		c.checkIdentifier(at, name)
		if fold(names[:i], name) {
			c.Reject(at, quote(name)+" is there twice, in another case; remove one")
		}
		if how := o.Redact[name]; c.OK(at) {
			c.checkRedaction(at, name, how, *o)
			hashes = hashes || how == RedactHash && c.OK(at)
		}
	}
	if file := path + ".redact-key-file"; c.OK(key, file) {
		c.readHashKey(file, o, hashes)
	}
}

// checkRedaction keeps the key and the timestamp, and finds what has no effect.
func (c observerChecker) checkRedaction(at, name, how string, o Observer) {
	inKey := fold(o.Key, name)
	switch {
	case strings.EqualFold(name, o.Timestamp):
		c.Reject(at, quote(name)+" is the timestamp, at which a poll continues, and the time of the event: remove it here, or poll by another column")
	case inKey && how != RedactHash:
		c.Reject(at, quote(name)+" is of the key, which tells rows apart: use hash")
	case len(o.Columns) == 0 || inKey || len(o.Key) == 0 && how == RedactHash: // It may be of the primary key.
	case how == RedactDrop && fold(o.Columns, name):
		c.Reject(at, quote(name)+" is among the columns as well; remove it there, or use hash or mask")
	case how != RedactDrop && !fold(o.Columns, name):
		c.Reject(at, quote(name)+" is not among the columns, so that no event has it; remove it here, or add it there")
	}
}

// readHashKey reads the key where columns are hashed.
func (c observerChecker) readHashKey(file string, o *Observer, hashes bool) {
	switch set := c.IsSet(file); {
	case !set && hashes:
		c.Reject(file, "redact-key-file is missing; name a file with the key of the hashes, such as the output of 'openssl rand -hex 32'")
	case set && !hashes:
		c.Reject(file, "redact hashes no column; remove it")
	case set:
		text := c.fromFile(file, o.RedactKeyFile, "key")
		if c.OK(file) && len(text) < leastHashKey {
			c.Reject(file, "the key in the file is shorter than 32 bytes; use a longer one, such as the output of 'openssl rand -hex 32'")
		}
		o.hashKey = field.NewSecret(text)
	}
}

func fold(names []string, name string) bool {
	return slices.ContainsFunc(names, func(other string) bool { return strings.EqualFold(name, other) })
}
