package oratest

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/observerd/observerd/test/kit/oratest/wire"
)

const (
	charsetUTF8  = 873
	charsetUTF16 = 2000
)

// logon is what a connection remembers between the two halves of a logon.
type logon struct {
	asked   challenge
	pending bool
}

// protocol says which charsets and abilities the server has. The clients'
// version of the session layer (11) decides, as it is the lower one.
func (c *conn) protocol() []byte {
	e := &encoder{}
	e.put(msgProtocol, 6, 0)
	e.put([]byte("x86_64/Linux 2.4.xx\x00")...)
	e.put(charsetUTF8&0xFF, charsetUTF8>>8, 1, 0, 0)
	charsets := [11]byte{9: charsetUTF16 >> 8, 10: charsetUTF16 & 0xFF}
	e.put(0, byte(len(charsets)))
	e.put(charsets[:]...)
	compiled := [42]byte{
		0: 6, 1: 1, 2: 1, 3: 1,
		4: 0x6F, 5: 1, 6: 1,
		7:  12,             // the version of the session layer
		15: 0x29, 16: 0x91, // the end of a call, and its sequence number
		27: 1,    // types of two bytes
		37: 0x22, // long chunks, and the time zone's version
	}
	e.put(byte(len(compiled)))
	e.put(compiled[:]...)
	runtime := []byte{2, 1, 0, 1, 0x18, 0, 0x77}
	e.put(byte(len(runtime)))
	e.put(runtime...)
	return e.buf
}

// skipTypes reads over the client's list of types, which may be longer than a
// packet: its abilities, its time zone, and entries of two or four numbers
// until one is zero.
func skipTypes(d *decoder) {
	d.skip(5)
	compiled := d.bytes(int(d.byte()))
	runtime := d.bytes(int(d.byte()))
	if len(runtime) > 1 && runtime[1]&1 != 0 {
		d.skip(11)
		if len(compiled) > 37 && compiled[37]&2 != 0 {
			d.skip(4)
		}
	}
	d.skip(2)
	number := func() int { return int(d.byte())<<8 | int(d.byte()) }
	for number() != 0 {
		if number() != 0 {
			d.skip(4)
		}
	}
}

// types answers the client's list of types: all of them are fine. The time zone of the
// database is UTC.
func (c *conn) types() []byte {
	e := &encoder{}
	e.put(msgTypes)
	e.put(0x80, 0, 0, 0, 60, 60, 60, 0x80, 0, 0, 0)
	e.buf = binary.BigEndian.AppendUint32(e.buf, 0x20)
	e.put(0, 0)
	return e.buf
}

// logonRequest is what both halves of a logon carry.
type logonRequest struct {
	user  string
	pairs map[string]string
}

func decodeLogon(d *decoder) logonRequest {
	var r logonRequest
	named := d.byte() != 0
	d.int()
	d.int() // mode
	d.byte()
	n := d.int()
	d.skip(2)
	if named {
		r.user = string(d.clr())
	}
	r.pairs = d.pairs(n)
	return r
}

// sessionKey is the first half of a logon: the server's challenge.
func (c *conn) sessionKey(r logonRequest) []byte {
	asked := c.server.accounts.challenge(r.user)
	c.logon = logon{asked: asked, pending: true}
	e := &encoder{}
	e.put(msgParameters)
	e.ints(5)
	e.pair("AUTH_SESSKEY", asked.sessionKey(), 1)
	e.pair("AUTH_VFR_DATA", hex.EncodeToString(asked.verifier.salt), verifierType)
	e.pair("AUTH_PBKDF2_CSK_SALT", hex.EncodeToString(asked.derivation), 0)
	e.pair("AUTH_PBKDF2_VGEN_COUNT", strconv.Itoa(generations), 0)
	e.pair("AUTH_PBKDF2_SDER_COUNT", strconv.Itoa(derivations), 0)
	e.summary(summary{})
	return e.buf
}

// authenticate is the second half: the client's answer, and the session.
func (c *conn) authenticate(r logonRequest) ([]byte, error) {
	proof, err := "", error(&wire.Error{Code: 1017})
	if c.logon.pending {
		proof, err = c.server.accounts.admit(r.user, c.logon.asked, r.pairs["AUTH_SESSKEY"], r.pairs["AUTH_PASSWORD"])
	}
	c.logon = logon{}
	if err != nil {
		return nil, err
	}
	c.server.counters.logons.Add(1)
	c.session = &wire.Session{
		User: strings.ToUpper(r.user), Program: r.pairs["AUTH_PROGRAM_NM"], SerialNo: c.serial,
		Settings: settings(r.pairs["AUTH_ALTER_SESSION"]),
	}
	return c.welcome(proof), nil
}

func (c *conn) welcome(proof string) []byte {
	o, e := c.server.opts, &encoder{}
	properties := [][2]string{
		{"AUTH_VERSION_STRING", "- Production"},
		{"AUTH_VERSION_NO", strconv.Itoa(versionNumber(o.Version))},
		{"AUTH_SESSION_ID", strconv.Itoa(c.serial)},
		{"AUTH_SERIAL_NUM", strconv.Itoa(c.serial)},
		{"AUTH_SC_SERVICE_NAME", o.Service},
		{"AUTH_SC_INSTANCE_NAME", "ORCL"},
		{"AUTH_SC_DB_DOMAIN", ""},
		{"AUTH_SC_DBUNIQUE_NAME", "ORCL"},
		{"AUTH_SVR_RESPONSE", proof},
	}
	e.put(msgParameters)
	e.ints(len(properties))
	for _, p := range properties {
		e.pair(p[0], p[1], 0)
	}
	e.put(msgServerPiggyback, 5)
	e.ints(0)
	e.put(0)
	e.ints(1)
	e.put(0)
	e.pair("AUTH_NLS_LXLAN", "AMERICAN", 16)
	e.ints(0)
	e.summary(summary{})
	return e.buf
}

// version answers which version the server is.
func (c *conn) version() []byte {
	o, e := c.server.opts, &encoder{}
	e.put(msgParameters)
	text := banner(o.Version)
	e.ints(len(text))
	e.clr([]byte(text))
	e.ints(versionNumber(o.Version))
	e.done()
	return e.buf
}

func versionNumber(major int) int {
	minor := 3
	if major == 11 {
		minor = 2
	}
	return major<<24 | minor<<20
}

func banner(major int) string {
	switch {
	case major <= 11:
		return fmt.Sprintf("Oracle Database %dg Enterprise Edition Release %d.2.0.4.0 - 64bit Production", major, major)
	case major == 12:
		return "Oracle Database 12c Enterprise Edition Release 12.2.0.1.0 - 64bit Production"
	case major < 23:
		return fmt.Sprintf("Oracle Database %dc Enterprise Edition Release %d.0.0.0.0 - Production", major, major)
	}
	return fmt.Sprintf("Oracle Database %dai Free Release %d.0.0.0.0 - Production", major, major)
}

var setting = regexp.MustCompile(`(?i)([A-Z_]+)\s*=\s*'([^']*)'`)

// settings are those of the ALTER SESSION that comes with a logon.
func settings(statement string) map[string]string {
	all := make(map[string]string)
	for _, m := range setting.FindAllStringSubmatch(statement, -1) {
		all[strings.ToUpper(m[1])] = m[2]
	}
	return all
}
