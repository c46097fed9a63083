package oratest

import (
	"encoding/binary"
	"fmt"
	"io"
)

// The kinds of packets of the transport (TNS).
const (
	packetConnect = 1
	packetAccept  = 2
	packetRefuse  = 4
	packetData    = 6
	packetMarker  = 12
)

// What a marker says. A break stops a call, a reset says that both sides have
// dropped what was under way.
const (
	markerBreak     = 1
	markerReset     = 2
	markerInterrupt = 3
)

const (
	headerSize = 8
	// dataHeader is what stands before the bytes of the session layer: the
	// header and two bytes of flags.
	dataHeader = headerSize + 2
	// maxPacket bounds what one header may make the server allocate.
	maxPacket = 1 << 21
	// flagClose on a data packet is a client's last word.
	flagClose = 0x40
)

// packet is one packet without its header.
type packet struct {
	kind byte
	body []byte
}

// readPacket reads the next packet. Its length is of 2 bytes before the
// connection was accepted and of 4 after that.
func readPacket(r io.Reader, accepted bool) (packet, error) {
	var header [headerSize]byte
	if _, err := io.ReadFull(r, header[:]); err != nil {
		return packet{}, err
	}
	length := uint32(binary.BigEndian.Uint16(header[:]))
	if accepted {
		length = binary.BigEndian.Uint32(header[:])
	}
	if length < headerSize || length > maxPacket {
		return packet{}, fmt.Errorf("a packet of %d bytes", length)
	}
	p := packet{kind: header[4], body: make([]byte, length-headerSize)}
	_, err := io.ReadFull(r, p.body)
	return p, err
}

// data returns what a data packet carries, and whether it ends the connection.
func (p packet) data() (body []byte, last bool) {
	return p.body[2:], binary.BigEndian.Uint16(p.body) == flagClose
}

// marker returns what a marker packet says.
func (p packet) marker() byte { return p.body[2] }

// dataPackets cuts what the server has to say into packets of at most size bytes.
func dataPackets(said []byte, size int) []byte {
	room := size - dataHeader
	var out []byte
	for first := true; first || len(said) > 0; first = false {
		part := said[:min(room, len(said))]
		said = said[len(part):]
		out = binary.BigEndian.AppendUint32(out, uint32(len(part)+dataHeader))
		out = append(out, packetData, 0, 0, 0, 0, 0)
		out = append(out, part...)
	}
	return out
}

// markerPacket is a marker as a server sends it.
func markerPacket(kind byte) []byte {
	return []byte{0, 0, 0, 11, packetMarker, 0x20, 0, 0, 1, 0, kind}
}
