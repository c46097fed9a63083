package engine

// dataType reads a type with its sizes.
func (p *parser) dataType() dataType {
	t := p.next()
	if t.kind != tokenWord {
		p.i--
		p.fail(902)
	}
	switch t.text {
	case "NUMBER":
		return p.numberType()
	case "FLOAT":
		d := dataType{name: typeFloat, precision: 126}
		if sizes := p.sizes(); len(sizes) > 0 {
			d.precision = sizes[0]
		}
		return d
	case "TIMESTAMP":
		return p.timestampType()
	case "INTERVAL":
		p.expect(905, "DAY")
		p.precision()
		p.expect(905, "TO", "SECOND")
		p.precision()
		return dataType{name: typeInterval, scale: 6}
	case "DATE", "CLOB", "NCLOB", "BLOB", "ROWID", "JSON", "BINARY_DOUBLE", "BINARY_FLOAT":
		return dataType{name: typeName(t.text)}
	}
	return p.textType(t)
}

func (p *parser) numberType() dataType {
	d := dataType{name: typeNumber}
	sizes := p.sizes()
	switch {
	case len(sizes) == 0:
		return d
	case len(sizes) > 1:
		d.scale = sizes[1]
	}
	d.precision, d.exact = sizes[0], true
	if d.precision < 1 || d.precision > 38 {
		p.fail(1727)
	}
	return d
}

func (p *parser) timestampType() dataType {
	d := dataType{name: typeTimestamp, scale: 6}
	if sizes := p.sizes(); len(sizes) > 0 {
		d.scale = sizes[0]
	}
	if p.word("WITH", "LOCAL", "TIME", "ZONE") {
		d.name = typeTimestampLTZ
	} else if p.word("WITH", "TIME", "ZONE") {
		d.name = typeTimestampTZ
	}
	return d
}

// longest are the sizes that types of text and bytes may have.
var longest = map[typeName]int{typeVarchar: 4000, typeNVarchar: 2000, typeChar: 2000, typeNChar: 1000, typeRaw: 2000}

func (p *parser) textType(t token) dataType {
	d := dataType{size: 1}
	switch t.text {
	case "VARCHAR2":
		d.name = typeVarchar
	case "NVARCHAR2":
		d.name = typeNVarchar
	case "CHAR":
		d.name = typeChar
	case "NCHAR":
		d.name = typeNChar
	case "RAW":
		d.name = typeRaw
	default:
		p.i--
		p.fail(902)
	}
	d.chars = d.national()
	if !p.symbol("(") {
		if d.name == typeVarchar || d.name == typeNVarchar || d.name == typeRaw {
			p.fail(906)
		}
		return d
	}
	d.size = p.size()
	if most := longest[d.name]; d.size > most {
		p.fail(910)
	}
	if p.word("CHAR") {
		d.chars = true
	} else {
		p.word("BYTE")
	}
	p.expectSymbol(")")
	return d
}

// sizes reads (n) or (n, m); * is the largest size.
func (p *parser) sizes() []int {
	if !p.symbol("(") {
		return nil
	}
	var all []int
	for {
		all = append(all, p.size())
		if !p.symbol(",") {
			p.expectSymbol(")")
			return all
		}
	}
}

func (p *parser) size() int {
	if p.symbol("*") {
		return 38
	}
	negative := p.symbol("-")
	t := p.peek()
	n, ok := parseNumber(t.text)
	if t.kind != tokenNumber || !ok {
		p.fail(910)
	}
	p.next()
	size, _ := n.int64()
	if negative {
		return int(-size)
	}
	return int(size)
}
