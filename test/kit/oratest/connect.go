package oratest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Where the connect packet says what, counted from behind its header.
const (
	connectLength = 24 - headerSize
	connectOffset = 26 - headerSize
	connectFixed  = 58 - headerSize
)

var (
	serviceName = regexp.MustCompile(`(?i)\(\s*SERVICE_NAME\s*=\s*([^()]*)\)`)
	sidName     = regexp.MustCompile(`(?i)\(\s*SID\s*=\s*([^()]*)\)`)
)

// accept reads what the client wants to connect to, and accepts or refuses it.
func (c *conn) accept() error {
	descriptor, err := c.descriptor()
	if err != nil {
		return err
	}
	c.server.counters.connects.Add(1)
	c.server.counters.roundTrips.Add(1)
	if c.refused && c.refusal == 0 {
		return errGone
	}
	code := c.server.known(descriptor)
	if c.refused {
		code = c.refusal
	}
	if code != 0 {
		return errors.Join(c.write(refusePacket(code)), errGone)
	}
	return c.write(acceptPacket(c.server.opts.PacketSize))
}

// descriptor reads the connect packet, and the data packet after it that holds
// a descriptor which is too long for the first.
func (c *conn) descriptor() (string, error) {
	p, err := readPacket(c.stream, false)
	if err != nil {
		return "", err
	}
	if p.kind != packetConnect || len(p.body) < connectFixed {
		return "", errors.New("the first packet is not a CONNECT")
	}
	length := int(binary.BigEndian.Uint16(p.body[connectLength:]))
	offset := int(binary.BigEndian.Uint16(p.body[connectOffset:])) - headerSize
	if offset >= 0 && offset+length <= len(p.body) {
		return string(p.body[offset : offset+length]), nil
	}
	if p, err = readPacket(c.stream, false); err != nil {
		return "", err
	}
	body, _ := p.data()
	return string(body), nil
}

// known returns the listener's refusal of a descriptor, 0 for none.
func (s *Server) known(descriptor string) int {
	if m := sidName.FindStringSubmatch(descriptor); m != nil {
		if slices.ContainsFunc(s.opts.SIDs, func(sid string) bool { return strings.EqualFold(sid, m[1]) }) {
			return 0
		}
		return 12505
	}
	if m := serviceName.FindStringSubmatch(descriptor); m != nil && strings.EqualFold(m[1], s.opts.Service) {
		return 0
	}
	return 12514
}

func acceptPacket(size int) []byte {
	const length = 45
	p := make([]byte, length)
	binary.BigEndian.PutUint16(p, length)
	p[4] = packetAccept
	binary.BigEndian.PutUint16(p[8:], 317)     // version of the transport
	binary.BigEndian.PutUint16(p[10:], 0x0801) // options, none of them out of band
	binary.BigEndian.PutUint16(p[16:], 1)      // byte order
	binary.BigEndian.PutUint16(p[20:], length) // where the data is, of which there is none
	binary.BigEndian.PutUint32(p[32:], uint32(size))
	binary.BigEndian.PutUint32(p[36:], uint32(size))
	return p
}

func refusePacket(code int) []byte {
	text := fmt.Sprintf("(DESCRIPTION=(TMP=)(VSNNUM=318767104)(ERR=%d)(ERROR_STACK=(ERROR=(CODE=%d)(EMFI=4))))", code, code)
	p := make([]byte, 12, 12+len(text))
	binary.BigEndian.PutUint16(p, uint16(12+len(text)))
	p[4] = packetRefuse
	p[8] = 1
	binary.BigEndian.PutUint16(p[10:], uint16(len(text)))
	return append(p, text...)
}
