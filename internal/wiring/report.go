package wiring

import (
	"context"

	"github.com/observerd/observerd/internal/lockdb"
	"github.com/observerd/observerd/internal/source/access"
	"github.com/observerd/observerd/internal/status"
)

// Report describes the cluster, with the accounts that no node tries any more.
func Report(ctx context.Context, db *lockdb.DB) (status.Report, error) {
	report, err := db.Report(ctx)
	for i, a := range report.Accounts {
		report.Accounts[i].Never = access.GivenUp(lockdb.Account{Failures: a.Failures, Reason: a.Reason}, wrongPassword)
	}
	return report, err
}
