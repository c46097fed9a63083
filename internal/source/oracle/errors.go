package oracle

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/observerd/observerd/internal/observer"
	"github.com/observerd/observerd/internal/source"
	"github.com/observerd/observerd/internal/source/oracle/client"
)

// translate makes of a failure an [*observer.Fault] that says what was being
// done and with which database. The end of the caller's context is no failure of
// the source: then its cause is the reason.
func (s *Source) translate(ctx context.Context, p source.Phase, operation string, err error) error {
	if err == nil {
		return nil
	}
	if known, ok := errors.AsType[*observer.Fault](err); ok {
		return &observer.Fault{Class: known.Class, Code: known.Code, Err: s.worded(operation, known.Err)}
	}
	if ctx.Err() != nil {
		return source.Ended(ctx, operation+": "+s.target)
	}
	fault := client.Classify(err)
	fault.Class = p.Class(fault.Class)
	if errors.Is(err, client.ErrShort) {
		// A read is begun again anyway, and a result that was cut short may well be
		// whole the next time.
		fault.Class = observer.ClassRetry
	}
	if p == source.Reading {
		err = withheld(fault.Class, err)
	}
	fault.Err = s.worded(operation, err)
	return fault
}

// withheld leaves the database's own words out of a refusal over rows. The statement
// had been described before, so it is sound in itself.
func withheld(class observer.Class, err error) error {
	refused, ok := errors.AsType[*client.Error](err)
	switch {
	case !ok:
		return err
	case class == observer.ClassQuery:
		return fmt.Errorf("%w; %s", refused.Bare(), source.Sound)
	case source.Explicable(class):
		return fmt.Errorf("%w; %s", refused.Bare(), source.Withheld)
	}
	return refused.Bare()
}

func (s *Source) worded(operation string, err error) error {
	return fmt.Errorf("%s: %s: %w", operation, s.target, err)
}

// The refusals that are looked at by their numbers.
const (
	codeIdentifier  = 904  // no such column
	codeTypes       = 932  // of another type than the statement takes it for
	codeTable       = 942  // no such table, or no right to see it
	codePrivileges  = 1031 // insufficient privileges
	codeDivision    = 1476 // division by zero
	codeUserenv     = 2003 // a parameter of SYS_CONTEXT that this version lacks
	codeFixedTables = 2030 // the tables under V$ views, for others than SYS
)

// refused reports whether err is one of these refusals; without any, whether it is one at
// all.
func refused(err error, codes ...int) bool {
	var e *client.Error
	return errors.As(err, &e) && (len(codes) == 0 || slices.Contains(codes, e.Code))
}

// ungranted reports whether something is missing, or hidden for want of a grant.
func ungranted(err error) bool {
	return refused(err, codeTable, codePrivileges, codeFixedTables, codeIdentifier)
}
