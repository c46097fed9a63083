package app_test

import (
	"testing"

	"github.com/observerd/observerd/internal/pgtest"
	"github.com/observerd/observerd/internal/waittest"
)

func TestMain(m *testing.M) {
	teachToSleep()
	waittest.VerifyNoLeaks(pgtest.Wrap(m))
}
