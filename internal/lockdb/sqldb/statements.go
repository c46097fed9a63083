package sqldb

import (
	"reflect"
	"sync/atomic"
)

// Statements are the statements of a package: T is a struct of texts, as [Rendering.SQL]
// reads them, each in a field with the name of the method that runs it; or a struct of such
// structs.
type Statements[T any] struct {
	db       *DB
	texts    T
	rendered atomic.Pointer[rendered[T]]
}

type rendered[T any] struct {
	by    *Rendering
	texts T
}

// NewStatements returns the statements with these texts on the database.
func NewStatements[T any](db *DB, texts T) *Statements[T] {
	return &Statements[T]{db: db, texts: texts}
}

// SQL returns the texts by the current [Rendering].
func (s *Statements[T]) SQL() *T {
	now := s.db.Rendering()
	if r := s.rendered.Load(); r != nil && r.by == now {
		return &r.texts
	}
	r := &rendered[T]{by: now, texts: s.texts}
	render(reflect.ValueOf(&r.texts).Elem(), now)
	s.rendered.Store(r)
	return &r.texts
}

func render(texts reflect.Value, by *Rendering) {
	for _, field := range texts.Fields() {
		if field.Kind() == reflect.Struct {
			render(field, by)
		} else {
			field.SetString(by.SQL(field.String()))
		}
	}
}
