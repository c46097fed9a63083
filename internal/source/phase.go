package source

import "github.com/observerd/observerd/internal/observer"

// Phase is what a database was doing when it refused.
type Phase int

// The phases.
const (
	// Connecting: it has seen no statement that reads anything.
	Connecting Phase = iota
	// Parsing: it read its catalogue, or took a statement apart without running it.
	Parsing
	// Reading: it evaluated rows, or may have. Its message may hold any value then,
	// whatever its code: conversions, functions, SIGNAL and RAISE choose both freely.
	Reading
)

// Class is the class of a refusal in that phase. Our account is refused at the logon and
// never later: a statement that says so has met another server, or an error that a
// function has raised.
func (p Phase) Class(class observer.Class) observer.Class {
	if class == observer.ClassCredentials && p != Connecting {
		return observer.ClassQuery
	}
	return class
}

// Advice follows words of ours for a refusal of that class; empty for none.
func (p Phase) Advice(class observer.Class) string {
	if p != Connecting && Explicable(class) {
		return Withheld
	}
	return ""
}

// Withheld follows the words of this package for an error that a database has
// raised over rows. Its own message is left out, be the code what it may: a
// conversion, a function or a trigger puts values into it.
const Withheld = "the database's message is left out, as it may hold values of rows: run the query by hand to read it"

// Sound follows instead where the database, asked once more without running the
// statement, has nothing against it.
const Sound = "the statement itself is sound, so a function or a conversion in it fails over a row; " + Withheld

// Explicable reports whether a failure of that class is one whose cause only the
// database's message names. The others say what there is to do by themselves.
func Explicable(class observer.Class) bool {
	return class == observer.ClassQuery || class == observer.ClassData || class == observer.ClassUnknown
}
