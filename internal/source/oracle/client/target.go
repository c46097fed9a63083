package client

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net"
	"regexp"
	"strconv"
	"strings"

	"github.com/observerd/observerd/internal/fn"
)

// DefaultPort is where an Oracle listener waits unless it was told otherwise.
const DefaultPort = "1521"

var (
	// plainName is what a service or an SID may be made of.
	plainName = regexp.MustCompile(`^[A-Za-z0-9_.$#-]+$`)
	// address and database are what a descriptor cannot do without.
	address  = regexp.MustCompile(`(?i)\(\s*HOST\s*=\s*[^()\s]+\s*\)`)
	database = regexp.MustCompile(`(?i)\(\s*(SERVICE_NAME|SID)\s*=\s*[^()\s]+\s*\)`)
	service  = regexp.MustCompile(`(?i)\(\s*SERVICE_NAME\s*=\s*[^()\s]+\s*\)`)
)

// Check says what a target lacks, or has too much of. It never repeats a part
// of it: a password may stand in the wrong place.
func (t Target) Check() error {
	switch {
	case t.User == "":
		return errors.New("the user is missing")
	case t.Password == "":
		return errors.New("the password is missing: without one the driver would log on as the operating system's user")
	case strings.EqualFold(t.User, "sys"):
		return errors.New("user SYS is refused, it would log on AS SYSDBA: use an account that may only read")
	}
	if err := t.checkDatabase(); err != nil {
		return err
	}
	switch {
	case t.Wallet == "" && t.WalletPassword != "":
		return errors.New("wallet-password is given without a wallet")
	case t.Wallet != "" && !t.TLS:
		return errors.New("a wallet needs TLS: set ssl=true")
	case t.Wallet != "" && t.Service == "" && !service.MatchString(t.Descriptor):
		return errors.New("a wallet needs the service's name, not an SID")
	}
	return nil
}

func (t Target) checkDatabase() error {
	names := len(fn.Only([]string{t.Service, t.SID, t.Descriptor}, func(name string) bool { return name != "" }))
	switch {
	case names == 0:
		return errors.New("the database's name is missing: set its service after the host, or ?sid=…")
	case names > 1:
		return errors.New("only one of service, sid and connect may be given")
	case t.Service != "" && !plainName.MatchString(t.Service):
		return errors.New("the service's name has characters that none has: letters, digits and _ . $ # - are possible")
	case t.SID != "" && !plainName.MatchString(t.SID):
		return errors.New("the SID has characters that none has: letters, digits and _ . $ # - are possible")
	case t.Descriptor != "":
		return t.checkDescriptor()
	case len(t.Servers) == 0:
		return errors.New("the host is missing")
	}
	for _, server := range t.Servers {
		if _, err := hostPort(server); err != nil {
			return err
		}
	}
	return nil
}

func (t Target) checkDescriptor() error {
	switch {
	case len(t.Servers) > 0:
		return errors.New("a descriptor names its own hosts: leave out host and server")
	case !balanced(t.Descriptor):
		return errors.New("the descriptor's parentheses do not match: use (DESCRIPTION=…)")
	case !address.MatchString(t.Descriptor):
		return errors.New("the descriptor has no (HOST=…)")
	case !database.MatchString(t.Descriptor):
		return errors.New("the descriptor has no (SERVICE_NAME=…) and no (SID=…)")
	}
	return nil
}

// balanced reports whether a text is one pair of parentheses and what they hold.
func balanced(text string) bool {
	depth := 0
	for i, c := range text {
		switch c {
		case '(':
			depth++
		case ')':
			depth--
		}
		if depth < 0 || depth == 0 && i < len(text)-1 {
			return false
		}
	}
	return depth == 0 && text != ""
}

// hostPort completes a server with the default port.
func hostPort(server string) (string, error) {
	host, port, err := net.SplitHostPort(server)
	if err != nil {
		// No port: a name, or an address of IPv6 in brackets.
		host, port, err = net.SplitHostPort(server + ":" + DefaultPort)
	}
	if port == "" {
		port = DefaultPort
	}
	n, wrong := strconv.ParseUint(port, 10, 16)
	switch {
	case err != nil || host == "" || strings.ContainsAny(host, " /?#@()="):
		return "", errors.New("a server is not host:port")
	case wrong != nil || n == 0:
		return "", errors.New("a server's port is not a number from 1 to 65535")
	}
	return net.JoinHostPort(host, port), nil
}

// String names the database in messages: without secrets, and without the account, which
// is no matter of their readers.
func (t Target) String() string {
	if t.Descriptor != "" {
		return cmp.Or(inDescriptor(t.Descriptor, "HOST"), "the descriptor") + "/" +
			cmp.Or(inDescriptor(t.Descriptor, "SERVICE_NAME"), inDescriptor(t.Descriptor, "SID"), "?")
	}
	return strings.Join(t.Servers, ",") + "/" + cmp.Or(t.Service, t.SID)
}

// inDescriptor returns the first value of a key, or nothing.
func inDescriptor(descriptor, key string) string {
	plain := strings.ReplaceAll(descriptor, " ", "")
	_, rest, _ := strings.Cut(strings.ToUpper(plain), "("+key+"=")
	value, _, ok := strings.Cut(rest, ")")
	if !ok {
		return ""
	}
	return strings.ToLower(value)
}

// Format implements [fmt.Formatter], so that no verb prints the passwords.
func (t Target) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, t.String()) }
