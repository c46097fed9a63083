package servertest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// stopTimeout bounds an end that nobody else bounds.
const stopTimeout = 30 * time.Second

// Kind is a kind of server.
type Kind struct {
	// Name is for messages, such as "PostgreSQL".
	Name string
	// Prefix begins the name of each folder, such as "observerd-pgtest-", by which
	// those of a killed run are found.
	Prefix string
	// Users are those as whom root runs it: the first that exists.
	Users []string
	// Pid is the file of a server's process id, below its folder of data.
	Pid string
	// End is the signal that ends a server without mercy.
	End syscall.Signal
	// Free gives back what a killed server keeps outside of its folder of
	// data; nil means nothing.
	Free func(data string) error
}

// alive reports whether a server runs on a folder of data.
func (k Kind) alive(data string) bool {
	pid := ReadPid(filepath.Join(data, k.Pid))
	return pid != 0 && Alive(pid)
}

func (k Kind) free(data string) error {
	if k.Free == nil {
		return nil
	}
	return k.Free(data)
}

// Instance is what servers of all kinds have. Its methods are not for concurrent use.
type Instance struct {
	Kind Kind
	Who  Account
	Dir  Workdir
	// Port is that of 127.0.0.1 on which it listens.
	Port int
	// Process is nil before the first start.
	Process *Process
}

// NewInstance makes the folder of a server, in parent as [NewWorkdir] does. The caller
// must Close it.
func NewInstance(kind Kind, parent string) (*Instance, error) {
	who, err := accountOf(kind.Name, kind.Users...)
	if err != nil {
		return nil, err
	}
	dir, err := NewWorkdir(kind, parent, who)
	if err != nil {
		return nil, err
	}
	return &Instance{Kind: kind, Who: who, Dir: dir}, nil
}

// Command prepares a program of the server, which gets the signal when these tests die.
// It inherits no environment: variables like PGDATA or LANG would make servers differ
// from machine to machine.
func (i *Instance) Command(ctx context.Context, onDeath syscall.Signal, program string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = i.Dir.Path
	cmd.Env = []string{"PATH=" + os.Getenv("PATH") + ":/usr/sbin:/sbin", "HOME=" + i.Dir.Path, "LC_ALL=C", "TZ=UTC"}
	cmd.SysProcAttr = i.Who.Attributes(onDeath)
	return cmd
}

// Start starts the server and returns when it answers, as [Workdir.Serve] does.
func (i *Instance) Start(ctx context.Context, cmd *exec.Cmd, ping func(context.Context) error) (err error) {
	if i.Process, err = i.Dir.Serve(ctx, cmd, ping, i.Kind.End); err != nil {
		return fmt.Errorf("start %s: %w", i.Kind.Name, err)
	}
	return nil
}

// Stop sends a signal and returns when the server has ended; one that does not run is
// left alone. It is killed when ctx ends first, which is an error.
func (i *Instance) Stop(ctx context.Context, signal syscall.Signal) error {
	if i.Process == nil {
		return nil
	}
	if err := i.Process.End(ctx, signal); err != nil {
		return fmt.Errorf("stop %s: %w", i.Kind.Name, err)
	}
	return nil
}

// Address is where the server listens.
func (i *Instance) Address() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(i.Port)) }

// LogTail returns the last lines of the server's log.
func (i *Instance) LogTail() string { return i.Dir.LogTail() }

// Close ends the server without mercy and removes all that it wrote.
func (i *Instance) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	return errors.Join(i.Stop(ctx, i.Kind.End), i.Kind.free(i.Dir.Data()), i.Dir.Remove())
}
