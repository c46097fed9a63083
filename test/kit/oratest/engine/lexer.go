package engine

import (
	"slices"
	"strings"
)

// tokenKind says what a token is.
type tokenKind uint8

const (
	tokenEnd    tokenKind = iota
	tokenWord             // an identifier or a keyword, in capitals
	tokenQuoted           // an identifier in double quotes
	tokenString
	tokenNumber
	tokenBind
	tokenSymbol
)

type token struct {
	kind tokenKind
	text string
	pos  int // offset in the statement, from 0
	end  int // offset behind it
}

// lexer cuts a statement into tokens.
type lexer struct {
	sql       string
	pos       int
	maxName   int // bytes of an identifier
	semicolon int // the code that refuses one
	tokens    []token
}

func (l *lexer) run() []token {
	for l.skip(); l.pos < len(l.sql); l.skip() {
		l.token()
	}
	return append(l.tokens, token{kind: tokenEnd, pos: l.pos, end: l.pos})
}

// skip passes blanks and comments.
func (l *lexer) skip() {
	for l.pos < len(l.sql) {
		rest := l.sql[l.pos:]
		switch {
		case strings.IndexByte(" \t\r\n\f", rest[0]) >= 0:
			l.pos++
		case strings.HasPrefix(rest, "--"):
			line, _, _ := strings.Cut(rest, "\n")
			l.pos += len(line)
		case strings.HasPrefix(rest, "/*"):
			end := strings.Index(rest, "*/")
			if end < 0 {
				panic(refuseAt(l.pos, 1742))
			}
			l.pos += end + 2
		default:
			return
		}
	}
}

func (l *lexer) token() {
	c := l.sql[l.pos]
	next := byte(0)
	if l.pos+1 < len(l.sql) {
		next = l.sql[l.pos+1]
	}
	switch {
	case c == '\'':
		l.quotedString()
	case (c == 'n' || c == 'N') && next == '\'':
		l.pos++
		l.quotedString()
	case isLetter(c):
		l.word()
	case isDigit(c) || c == '.' && isDigit(next):
		l.number()
	case c == '"':
		l.quotedName()
	case c == ':' && (isLetter(next) || isDigit(next)):
		l.scan(tokenBind, 1, isNameByte)
	default:
		l.symbol(c)
	}
}

func isLetter(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isNameByte(c byte) bool {
	return isLetter(c) || isDigit(c) || c == '_' || c == '$' || c == '#'
}

// scan takes the bytes that follow the first skip ones as long as in says so.
func (l *lexer) scan(k tokenKind, skip int, in func(byte) bool) {
	end := l.pos + skip
	for end < len(l.sql) && in(l.sql[end]) {
		end++
	}
	l.emit(k, l.sql[l.pos+skip:end], l.pos, end)
}

func (l *lexer) emit(k tokenKind, text string, pos, end int) {
	l.tokens = append(l.tokens, token{k, text, pos, end})
	l.pos = end
}

func (l *lexer) word() {
	start := l.pos
	l.scan(tokenWord, 0, isNameByte)
	last := &l.tokens[len(l.tokens)-1]
	last.text = strings.ToUpper(last.text)
	if len(last.text) > l.maxName {
		panic(refuseAt(start, 972))
	}
}

func (l *lexer) quotedName() {
	end := strings.IndexByte(l.sql[l.pos+1:], '"')
	switch {
	case end < 0:
		panic(refuseAt(l.pos, 1740))
	case end == 0:
		panic(refuseAt(l.pos, 1741))
	case end > l.maxName:
		panic(refuseAt(l.pos, 972))
	}
	l.emit(tokenQuoted, l.sql[l.pos+1:l.pos+1+end], l.pos, l.pos+end+2)
}

func (l *lexer) quotedString() {
	var b strings.Builder
	for i := l.pos + 1; i < len(l.sql); i++ {
		if l.sql[i] != '\'' {
			b.WriteByte(l.sql[i])
			continue
		}
		if i+1 < len(l.sql) && l.sql[i+1] == '\'' {
			b.WriteByte('\'')
			i++
			continue
		}
		l.emit(tokenString, b.String(), l.pos, i+1)
		return
	}
	panic(refuseAt(l.pos, 1756))
}

func (l *lexer) number() {
	end := l.pos
	digits := func() {
		for end < len(l.sql) && isDigit(l.sql[end]) {
			end++
		}
	}
	digits()
	if end < len(l.sql) && l.sql[end] == '.' {
		end++
		digits()
	}
	if end < len(l.sql) && (l.sql[end] == 'e' || l.sql[end] == 'E') {
		exponent := end + 1
		if exponent < len(l.sql) && (l.sql[exponent] == '+' || l.sql[exponent] == '-') {
			exponent++
		}
		if exponent < len(l.sql) && isDigit(l.sql[exponent]) {
			end = exponent
			digits()
		}
	}
	l.emit(tokenNumber, l.sql[l.pos:end], l.pos, end)
}

func (l *lexer) symbol(c byte) {
	end := l.pos + 1
	if end < len(l.sql) && slices.Contains([]string{"||", "<=", ">=", "<>", "!=", "^=", "=>", ":="}, l.sql[l.pos:end+1]) {
		end++
	} else if c == ';' && l.semicolon != 0 {
		panic(refuseAt(l.pos, l.semicolon))
	} else if strings.IndexByte("(),.+-*/=<>;@", c) < 0 {
		panic(refuseAt(l.pos, 911))
	}
	l.emit(tokenSymbol, l.sql[l.pos:end], l.pos, end)
}
