package events

import (
	"context"
)

func (r *Relay) databaseFails(ctx context.Context, err error) {
	if ctx.Err() == nil && r.database.Begin() {
		r.opts.Logger.Warn("Coordination database fails, relay waits", "err", err)
	}
}

func (r *Relay) databaseAnswers() {
	if lasted, over := r.database.End(); over {
		r.opts.Logger.Info("Coordination database answers again", "after", lasted)
	}
}
