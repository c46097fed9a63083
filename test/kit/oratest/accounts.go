package oratest

import (
	"strings"
	"sync"

	"github.com/observerd/observerd/test/kit/oratest/wire"
)

// accounts are the users of a server. A verifier takes thousands of hashes, so
// it is made at the first logon that needs it and kept.
type accounts struct {
	limit int

	mu  *sync.Mutex
	all map[string]*account
}

type account struct {
	password string
	verifier *verifier
	failed   int
	locked   bool
}

func newAccounts(o Options) (accounts, error) {
	a := accounts{limit: o.MaxFailedLogons, mu: new(sync.Mutex), all: make(map[string]*account)}
	for user, password := range o.Users {
		a.all[strings.ToUpper(user)] = &account{password: password}
	}
	return a, nil
}

// challenge returns what to ask of a user. One that is not known is asked too,
// so that nobody learns which users there are.
func (a accounts) challenge(user string) (challenge, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	known, ok := a.all[strings.ToUpper(user)]
	if !ok {
		return newChallenge(verifier{salt: random(16), key: random(32)}), nil
	}
	if known.verifier == nil {
		v, err := newVerifier(known.password)
		if err != nil {
			return challenge{}, err
		}
		known.verifier = &v
	}
	return newChallenge(*known.verifier), nil
}

// admit judges a client's answer to a challenge.
func (a accounts) admit(user string, asked challenge, clientKey, password string) (proof string, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	known, ok := a.all[strings.ToUpper(user)]
	if !ok {
		return "", &wire.Error{Code: 1017}
	}
	if known.locked {
		return "", &wire.Error{Code: 28000}
	}
	proof, err = asked.answer(clientKey, password, known.password)
	if err != nil {
		known.failed++
		known.locked = a.limit > 0 && known.failed >= a.limit
		return "", &wire.Error{Code: 1017}
	}
	known.failed = 0
	return proof, nil
}

// SetPassword changes the password of an account, or makes one, unlocked.
func (s *Server) SetPassword(user, password string) {
	s.accounts.mu.Lock()
	defer s.accounts.mu.Unlock()
	s.accounts.all[strings.ToUpper(user)] = &account{password: password}
}

// SetLocked locks or unlocks an account and forgets its failed logons.
func (s *Server) SetLocked(user string, locked bool) {
	s.accounts.mu.Lock()
	defer s.accounts.mu.Unlock()
	if known, ok := s.accounts.all[strings.ToUpper(user)]; ok {
		known.locked, known.failed = locked, 0
	}
}
