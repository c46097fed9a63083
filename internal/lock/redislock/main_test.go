package redislock_test

import (
	"testing"

	"github.com/observerd/observerd/test/kit/redistest"
	"github.com/observerd/observerd/test/kit/servertest"
	"github.com/observerd/observerd/test/kit/waittest"
)

func TestMain(m *testing.M) {
	servertest.SideBySide(10)
	waittest.VerifyNoLeaks(redistest.Wrap(m))
}
