package workload

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"
)

// porter changes a slot of some shelf, again and again.
type porter struct {
	*Writers
	random  *rand.Rand
	shelves int
}

// turn is one transaction.
func (p *porter) turn(ctx context.Context) error {
	defer pause(ctx, 10*time.Millisecond)
	number := 1 + p.random.IntN(p.shelves)
	slot := 1 + p.random.IntN(slots(number))
	return p.execute(ctx, "UPDATE "+Shelf(number)+" SET n = n + 1, status = $1 WHERE slot = $2",
		fmt.Sprintf(Mark+"-p%d", p.random.IntN(1000)), fmt.Sprintf(Mark+"-slot-%d", slot))
}
