package waittest

import (
	"context"
	"time"

	"go.uber.org/goleak"
)

// leakPatience is how long goroutines may take to end after the last test.
const leakPatience = 15 * time.Second

// VerifyNoLeaks is [goleak.VerifyTestMain] for a machine with much else to do: by
// itself goleak waits for less than half a second.
func VerifyNoLeaks(m goleak.TestingM) { goleak.VerifyTestMain(patient{m, leakPatience}) }

type patient struct {
	inner goleak.TestingM
	limit time.Duration
}

// Run implements [goleak.TestingM].
func (p patient) Run() int {
	code := p.inner.Run()
	if code == 0 {
		// What is left then is goleak's to tell.
		_ = Within(context.Background(), p.limit, func() error { return goleak.Find() })
	}
	return code
}
