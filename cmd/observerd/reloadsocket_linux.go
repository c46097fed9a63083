package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/user"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/observerd/observerd/internal/fn"
)

// requestTimeout is how long a client may take to write its request.
const requestTimeout = 5 * time.Second

// reloadSocket is where the process of that number takes requests for a reload: an
// abstract Unix socket, of which no file is left behind. Its name has the namespace
// that the number belongs to, as containers may share a network.
func reloadSocket(pid int) (string, error) {
	namespace, err := os.Readlink("/proc/self/ns/pid")
	return fmt.Sprintf("@observerd/%s/%d/reload", namespace, pid), err
}

// serveReloads passes on the requests for a reload of this process. stop waits for the end.
func serveReloads(ctx context.Context, self *atomic.Pointer[nodeProcess], requests chan<- reloadAsk) (stop func(), err error) {
	name, err := reloadSocket(os.Getpid())
	if err != nil {
		return nil, err
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "unix", name)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var serving sync.WaitGroup
	serving.Go(func() {
		for ctx.Err() == nil {
			conn, err := listener.Accept()
			if err != nil {
				select { // There may be too many open files.
				case <-ctx.Done():
				case <-time.After(time.Second):
				}
				continue
			}
			serving.Go(func() { serveReload(ctx, conn, self, requests) })
		}
	})
	return func() {
		cancel()
		_ = listener.Close()
		serving.Wait()
	}, nil
}

// serveReload answers one client. It ends when the client leaves, too.
func serveReload(ctx context.Context, conn net.Conn, self *atomic.Pointer[nodeProcess], requests chan<- reloadAsk) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	defer func() { _ = conn.Close() }()
	encoder := json.NewEncoder(conn)
	client, err := peer(conn)
	// Outside of this container a process has no number here, and its user may show as nobody.
	if err != nil || client.Pid == 0 || client.Uid != 0 && int(client.Uid) != os.Geteuid() {
		_ = encoder.Encode(reloadAnswer{ExitCode: exitDenied, Why: "only the user of the node, and root, may reload it"})
		return
	}
	if conn.SetReadDeadline(time.Now().Add(requestTimeout)) != nil {
		return
	}
	text, err := bufio.NewReader(conn).ReadString('\n')
	if err == nil && text == describeRequest {
		_ = encoder.Encode(self.Load())
	}
	if err != nil || text != reloadRequest {
		return
	}
	if conn.SetReadDeadline(time.Time{}) != nil {
		return
	}
	go func() {
		defer cancel()
		_, _ = io.Copy(io.Discard, conn)
	}()
	answers := make(chan reloadAnswer, 2)
	select {
	case requests <- reloadAsk{actor: atThisHost(userName(client.Uid)), answers: answers}:
	case <-ctx.Done():
		return
	}
	for {
		select {
		case answer := <-answers:
			if encoder.Encode(answer) != nil || !answer.Waiting {
				return
			}
		case <-ctx.Done():
			return
		}
	}
}

// userName is the name of a user of this host, or its number where it has none.
func userName(uid uint32) string {
	id := strconv.FormatUint(uint64(uid), 10)
	if u, err := user.LookupId(id); err == nil {
		return u.Username
	}
	return id
}

// dialReload connects to the process of that number, and to no other. It returns its user.
func dialReload(ctx context.Context, pid int) (conn net.Conn, uid int, err error) {
	name, err := reloadSocket(pid)
	if err != nil {
		return nil, 0, err
	}
	conn, err = new(net.Dialer).DialContext(ctx, "unix", name)
	switch {
	case errors.Is(err, unix.ECONNREFUSED):
		return nil, 0, fmt.Errorf("process %d does not listen: it has ended, is starting, is not a node, or runs in a container; run the command in that container", pid)
	case err != nil:
		return nil, 0, err
	}
	server, err := peer(conn)
	if err != nil || int(server.Pid) != pid {
		return nil, 0, errors.Join(fmt.Errorf("another process listens instead of process %d", pid), err, conn.Close())
	}
	return conn, int(server.Uid), nil
}

// describeTimeout is how long a process may take to say which node it is. It answers
// also while it reloads.
const describeTimeout = 2 * time.Second

// runningNodes returns the processes that take requests for a reload from this user. The
// kernel lists their sockets, and says who is at the other end, so neither a file nor a
// number that another process has by now is trusted.
func runningNodes(ctx context.Context) ([]nodeProcess, error) {
	list, err := os.ReadFile("/proc/net/unix")
	if err != nil {
		return nil, err
	}
	pids := reloadPIDs(string(list))
	found := make([]nodeProcess, len(pids))
	var asking sync.WaitGroup
	for i, pid := range pids { // Side by side: one of them may be stopped.
		asking.Go(func() {
			if p, err := describe(ctx, pid); err == nil {
				found[i] = p
			}
		})
	}
	asking.Wait()
	return slices.DeleteFunc(found, func(p nodeProcess) bool { return p.PID == 0 }), nil
}

// reloadPIDs are the numbers in the names of the sockets that a text of the kernel lists,
// sorted.
func reloadPIDs(list string) []int {
	name, err := reloadSocket(0)
	if err != nil {
		return nil
	}
	before, after, _ := strings.Cut(name, "/0/")
	var pids []int
	for line := range strings.Lines(list) {
		_, socket, ok := strings.Cut(strings.TrimSpace(line), before+"/")
		number, rest, _ := strings.Cut(socket, "/")
		if pid, err := strconv.Atoi(number); ok && rest == after && err == nil {
			pids = append(pids, pid)
		}
	}
	return fn.Distinct(pids)
}

// describe asks a process which node it is; one of this user that does not answer has no Config.
// The error is of one that is none, or is not this user's.
func describe(ctx context.Context, pid int) (p nodeProcess, err error) {
	ctx, cancel := context.WithTimeout(ctx, describeTimeout)
	defer cancel()
	conn, uid, err := dialReload(ctx, pid)
	if err != nil {
		return p, err
	}
	defer func() { _ = conn.Close() }()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	fmt.Fprint(conn, describeRequest)
	var answer struct {
		nodeProcess
		ExitCode int `json:"exit_code"`
	}
	switch err := json.NewDecoder(io.LimitReader(conn, 1<<20)).Decode(&answer); {
	case err != nil && ctx.Err() != nil && slices.Contains([]int{0, uid}, os.Geteuid()):
		return nodeProcess{PID: pid, UID: uid}, nil
	case err != nil:
		return p, err
	case answer.ExitCode != exitOK:
		return p, codeError{answer.ExitCode, errors.New("this user may not reload it")}
	}
	answer.PID, answer.UID = pid, uid
	return answer.nodeProcess, nil
}

// peer is the process at the other end of a Unix socket.
func peer(conn net.Conn) (*unix.Ucred, error) {
	socket, ok := conn.(*net.UnixConn)
	if !ok {
		return nil, errors.ErrUnsupported
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return nil, err
	}
	var cred *unix.Ucred
	var unknown error
	err = raw.Control(func(fd uintptr) { cred, unknown = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) })
	return cred, errors.Join(err, unknown)
}
