package engine

import "strings"

func (c *compiler) like(sc *scope, x likeExpr) *node {
	left, pattern := c.to(c.value(sc, x.x), kindText), c.to(c.value(sc, x.pattern), kindText)
	escape := constant(null, dataType{})
	if x.escape != nil {
		escape = c.to(c.value(sc, x.escape), kindText)
	}
	n := (&node{typ: plain(typeNumber), condition: true, nullable: true}).inherit(left, pattern, escape)
	n.eval = func(f *frame) (value, error) {
		var v [3]value
		for i, in := range []*node{left, pattern, escape} {
			var err error
			if v[i], err = in.eval(f); err != nil {
				return null, err
			}
		}
		if v[0].isNull() || v[1].isNull() {
			return null, nil
		}
		return truth(likes(v[0].s, v[1].s, v[2].s) != x.not), nil
	}
	return n
}

// likes matches text with a pattern in which % is any text and _ one character.
func likes(s, pattern, escape string) bool {
	for pattern != "" {
		switch {
		case escape != "" && strings.HasPrefix(pattern, escape):
			pattern = pattern[len(escape):]
		case pattern[0] == '%':
			pattern = pattern[1:]
			for i := 0; i <= len(s); i++ {
				if likes(s[i:], pattern, escape) {
					return true
				}
			}
			return false
		case pattern[0] == '_':
			if s == "" {
				return false
			}
			s, pattern = s[firstRune(s):], pattern[1:]
			continue
		}
		if pattern == "" || s == "" || s[0] != pattern[0] {
			return false
		}
		s, pattern = s[1:], pattern[1:]
	}
	return s == ""
}

func firstRune(s string) int {
	for i := range s {
		if i > 0 {
			return i
		}
	}
	return len(s)
}
