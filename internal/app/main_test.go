package app_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/observerd/observerd/internal/pgtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(pgtest.Wrap(m)) }
