package app_test

import (
	"testing"

	"github.com/observerd/observerd/test/kit/pgtest"
	"github.com/observerd/observerd/test/kit/servertest"
	"github.com/observerd/observerd/test/kit/waittest"
)

func TestMain(m *testing.M) {
	teachToSleep()
	servertest.SideBySide(5)
	waittest.VerifyNoLeaks(pgtest.Wrap(m))
}
