package config

import (
	"io/fs"
	"slices"

	"github.com/observerd/observerd/internal/config/fileowner"
)

// layer says where a value came from; a higher one wins.
type layer int

const (
	fromDefault layer = iota
	fromFile
	fromEnvironment
	fromFlag
)

// origin is the place to correct a value.
type origin struct {
	layer        layer
	line, column int
	// name is the variable or flag.
	name string
}

// ledger knows where each key was set and what is wrong with it.
type ledger struct {
	file     string
	origins  map[string]origin
	wrong    map[string]bool
	problems []Problem
	warnings []Problem
	// othersMayRead is that of [Options].
	othersMayRead func(fs.FileInfo) bool
}

func newLedger(file string) *ledger {
	return &ledger{file: file, origins: make(map[string]origin), wrong: make(map[string]bool), othersMayRead: fileowner.OthersMayRead}
}

// at returns where a key was set, or else where the section is that it would
// be in. What was not set anywhere has layer fromDefault.
func (l *ledger) at(key string) origin {
	for {
		if o, ok := l.origins[key]; ok {
			return o
		}
		i := lastSeparator(key)
		if i < 0 {
			return origin{}
		}
		key = key[:i]
	}
}

func lastSeparator(key string) int {
	for i := len(key) - 1; i >= 0; i-- {
		if key[i] == '.' || key[i] == '[' {
			return i
		}
	}
	return -1
}

// layerOf returns the layer that set the key itself.
func (l *ledger) layerOf(key string) layer { return l.origins[key].layer }

// reject notes a mistake at a key. A key has one mistake at most: what follows
// from an unreadable value would only confuse.
func (l *ledger) reject(key, text string) {
	if l.wrong[key] {
		return
	}
	l.wrong[key] = true
	l.problems = append(l.problems, l.problem(l.at(key), key, text))
}

// refuse notes that the file of a key cannot be read; the key "" is the
// configuration itself.
func (l *ledger) refuse(key string, why refusal) {
	if l.wrong[key] {
		return
	}
	l.wrong[key] = true
	p := l.problem(l.at(key), key, why.text)
	p.unread, p.denied = true, why.denied
	l.problems = append(l.problems, p)
}

// lacksFiles reports whether there are mistakes, and all of them are files that
// cannot be read.
func (l *ledger) lacksFiles() bool {
	return len(l.problems) > 0 && !slices.ContainsFunc(l.problems, func(p Problem) bool { return !p.unread })
}

// rejectAt notes a mistake at a place of its own.
func (l *ledger) rejectAt(o origin, key, text string) {
	l.problems = append(l.problems, l.problem(o, key, text))
}

func (l *ledger) warn(key, text string) {
	l.warnings = append(l.warnings, l.problem(l.at(key), key, text))
}

func (l *ledger) problem(o origin, key, text string) Problem {
	p := Problem{File: l.file, Line: o.line, Column: o.column, Origin: o.name, Key: key, Text: text}
	if o.name != "" {
		p.File = ""
	}
	return p
}

// ok says that none of the keys is wrong.
func (l *ledger) ok(keys ...string) bool {
	for _, key := range keys {
		if l.wrong[key] {
			return false
		}
	}
	return true
}

// place is where a key was set, for a mention in another mistake.
func (l *ledger) place(key string) string {
	return l.problem(l.at(key), "", "").where()
}
