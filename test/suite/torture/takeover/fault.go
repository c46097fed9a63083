package takeover

import (
	"context"
	"syscall"

	"github.com/observerd/observerd/test/kit/netfault"
)

// inject does it to the node.
func (m *member) inject(kind Kind) error {
	switch kind {
	case Kill:
		return m.process.Signal(syscall.SIGKILL)
	case Leave:
		return m.process.Signal(syscall.SIGTERM)
	case Sleep:
		return m.process.Signal(syscall.SIGSTOP)
	case Reset:
		m.proxy.Reset()
		m.proxy.Refuse(true)
	case Hole:
		m.proxy.SetImpairment(netfault.BlackHole())
	}
	return nil
}

// heal undoes it, except that a process that has ended stays so.
func (m *member) heal(ctx context.Context, kind Kind) error {
	switch kind {
	case Kill, Leave:
		_, err := m.process.Wait(ctx)
		return err
	case Sleep:
		return m.process.Signal(syscall.SIGCONT)
	case Reset:
		m.proxy.Refuse(false)
	case Hole:
		m.proxy.SetImpairment(netfault.Impairment{})
	}
	return nil
}
