package relay

import (
	"fmt"

	"github.com/google/uuid"

	"github.com/observerd/observerd/internal/events"
)

// verdict is what follows of a comparison.
type verdict int

const (
	agrees    verdict = iota // The stream goes on from its offset.
	isAhead                  // The sink has stored more: an answer of it was lost.
	isBehind                 // The sink has lost what it had stored last.
	isEmptied                // It has lost all of it, as it was told to.
	halts                    // A person has to look.
)

// comparison is what the sink and the log know of each other in one stream.
type comparison struct {
	log  uuid.UUID
	mark events.Mark
	// has is what the sink has stored last; nil for nothing.
	has *events.Position
	// held says that the log has that event under its id, taken that retention took it.
	held, taken bool
	// emptied says that the target's own retention takes events.
	emptied bool
}

// verdict is a table, in docs/delivery.md too.
func (c comparison) verdict() (verdict, error) {
	last := c.mark.Stored
	last.Stream = c.mark.Stream
	switch {
	case c.mark.Adopted && c.has != nil && c.has.Log == c.log && c.has.Seq > c.mark.Offset && c.held:
		return isAhead, nil // The first batch since was stored, and its answer lost.
	case c.mark.Adopted:
		return agrees, nil
	case c.has == nil && last.Seq == 0:
		return agrees, nil
	case c.has == nil && c.emptied:
		return isEmptied, nil
	case c.has == nil:
		return halts, fmt.Errorf("the sink has none of the events that it had stored, up to %d: its target was emptied, or is another one", last.Seq)
	case c.has.Log != c.log:
		return halts, fmt.Errorf("%w: up to %d of the log %s, and this is the log %s", ErrUnknown, c.has.Seq, c.has.Log, c.log)
	case c.has.Is(last):
		return agrees, nil
	case c.has.Seq > last.Seq && c.held:
		return isAhead, nil
	case c.has.Seq < last.Seq && (c.held || c.taken): // Where retention took more, the stream has a gap.
		return isBehind, nil
	}
	return halts, c.unknown()
}

func (c comparison) unknown() error {
	return fmt.Errorf("%w: up to %d, which is %s there", ErrUnknown, c.has.Seq, c.has.ID)
}
