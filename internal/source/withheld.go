package source

import "github.com/observerd/observerd/internal/observer"

// Withheld follows the words of this package for an error that a database has
// raised over rows. Its own message is left out, be the code what it may: a
// conversion, a function or a trigger of somebody else puts values into it.
const Withheld = "the database's message is left out, as it may hold values of rows: run the query by hand to read it"

// Sound follows instead where the database, asked once more without running the
// statement, has nothing against it.
const Sound = "the statement itself is sound, so a function or a conversion in it fails over a row; " + Withheld

// Explicable reports whether a failure of that class is one whose cause only the
// database's message names. The others say what there is to do by themselves.
func Explicable(class observer.Class) bool {
	switch class {
	case observer.ClassQuery, observer.ClassData, observer.ClassUnknown:
		return true
	}
	return false
}
