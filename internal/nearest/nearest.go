// Package nearest finds the name that was meant by one with a typing mistake.
package nearest

import (
	"strings"

	"github.com/agnivade/levenshtein"
)

// Name returns the candidate that name was probably meant to be, or "" when
// none is near: at most every third letter may differ. Case and separators do
// not count, so fixedDelay and fixed_delay are fixed-delay.
func Name(name string, candidates []string) string {
	best, least := "", max(1, len(name)/3)+1
	for _, c := range candidates {
		if d := levenshtein.ComputeDistance(plain(name), plain(c)); d < least {
			best, least = c, d
		}
	}
	return best
}

func plain(name string) string {
	return strings.NewReplacer("-", "", "_", "", " ", "").Replace(strings.ToLower(name))
}

// Suggest says what to write: the nearest candidate, or else all of them.
func Suggest(name string, candidates []string) string {
	if near := Name(name, candidates); near != "" {
		return "write " + near
	}
	if len(candidates) == 0 {
		return "there is none"
	}
	return "there is " + strings.Join(candidates, ", ")
}
