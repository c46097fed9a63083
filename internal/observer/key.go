package observer

import "strings"

var keyEscaper = strings.NewReplacer("%", "%25", "/", "%2F")

// JoinKey makes one text of the parts of a natural key: joined with "/", in
// which a "/" or "%" of a part of a compound key is escaped as in a URL. Equal
// texts mean equal keys. A key of one part is that part, unchanged.
func JoinKey(parts []string) string {
	if len(parts) == 1 {
		return parts[0]
	}
	escaped := make([]string, len(parts))
	for i, part := range parts {
		escaped[i] = keyEscaper.Replace(part)
	}
	return strings.Join(escaped, "/")
}

var keyUnescaper = strings.NewReplacer("%2F", "/", "%25", "%")

// SplitKey undoes [JoinKey] for a key of n parts.
func SplitKey(key string, n int) []string {
	if n == 1 {
		return []string{key}
	}
	parts := strings.SplitN(key, "/", n)
	for i, part := range parts {
		parts[i] = keyUnescaper.Replace(part)
	}
	return parts
}
