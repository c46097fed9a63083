// Package goora is go-ora as the Oracle source may use it. The driver decodes
// what Oracle sends; everything that a daemon has to rely on for months is made
// here around it: deadlines, connections that are not trusted after a failure,
// results that are known to be whole, panics that end one statement and not the
// process, and a password that is not tried by everybody at once.
package goora

import _ "time/tzdata" // The driver looks time zones of sessions up by name.
