// Package nearest finds the name that was meant by one with a typing mistake.
package nearest

import "strings"

// Name returns the candidate that name was probably meant to be, or "" when
// none is near: at most every third letter may differ. Case and separators do
// not count, so fixedDelay and fixed_delay are fixed-delay.
func Name(name string, candidates []string) string {
	best, least := "", max(1, len(name)/3)+1
	for _, c := range candidates {
		if d := Distance(plain(name), plain(c)); d < least {
			best, least = c, d
		}
	}
	return best
}

// Distance returns how many letters must be put in, left out, replaced, or swapped with
// their neighbour to make one text of the other, when none is changed twice.
func Distance(a, b string) int {
	x, y := []rune(a), []rune(b)
	last, before, row := make([]int, len(y)+1), make([]int, len(y)+1), make([]int, len(y)+1)
	for j := range last {
		last[j] = j
	}
	for i := range x {
		row[0] = i + 1
		for j := range y {
			replaced := last[j]
			if x[i] != y[j] {
				replaced++
			}
			row[j+1] = min(row[j]+1, last[j+1]+1, replaced)
			if i > 0 && j > 0 && x[i] == y[j-1] && x[i-1] == y[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(y)]
}

func plain(name string) string {
	return strings.NewReplacer("-", "", "_", "", " ", "").Replace(strings.ToLower(name))
}

// Suggest says what to use: the nearest candidate, or else one of them.
func Suggest(name string, candidates []string) string {
	if near := Name(name, candidates); near != "" {
		return "use " + near
	}
	switch len(candidates) {
	case 0:
		return "there is none"
	case 1:
		return "use " + candidates[0]
	}
	return "use one of " + strings.Join(candidates, ", ")
}

// Either lists what may be written: a, b or c.
func Either(words []string) string {
	last := len(words) - 1
	if last < 1 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:last], ", ") + " or " + words[last]
}
