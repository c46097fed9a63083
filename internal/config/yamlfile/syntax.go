package yamlfile

import (
	"bytes"
	"cmp"
	"regexp"
	"strconv"
	"strings"
)

// The parser's messages are fixed texts, but for the name of an anchor, which
// may be a secret that begins with an asterisk.
var (
	yamlMessage = regexp.MustCompile(`^yaml: (?:line (\d+): )?(.*)$`)
	yamlAnchor  = regexp.MustCompile(`anchor '.*'`)
	encodings   = regexp.MustCompile(`UTF-(8|16)|surrogate`)
)

// advice says what to write, for messages of the parser that do not.
func advice(message string) string {
	return map[string]string{
		"mapping values are not allowed in this context":               `quote a value that has ": " in it, and indent keys of one section alike`,
		"did not find expected key":                                    "indent the keys of one section alike, with spaces",
		"did not find expected '-' indicator":                          `begin each entry of the list with "- ", indented alike`,
		"did not find expected ',' or ']'":                             "close the list with ], and the quotes in it",
		"did not find expected ',' or '}'":                             "close the mapping with }, and the quotes in it",
		"did not find expected node content":                           "write a value here, or quote it",
		"could not find expected ':'":                                  `write ": " between key and value`,
		"found character that cannot start any token":                  "indent with spaces instead of tabs, and quote values that begin with @, % or `",
		"found a tab character that violates indentation":              "indent with spaces",
		"found a tab character where an indentation space is expected": "indent with spaces",
		"found unexpected end of stream":                               "close the quote that is opened here",
		"control characters are not allowed":                           plainText,
	}[message]
}

// plainText is the advice for a file in another encoding.
const plainText = "write the file as plain UTF-8 text"

func syntaxText(err error) string {
	_, message := splitMessage(err)
	if strings.Contains(message, "anchor") {
		return yamlAnchor.ReplaceAllString(message, "anchor") + "; quote a value that begins with * or &"
	}
	if encodings.MatchString(message) {
		// The parser counts octets, and its message differs with the text that follows.
		return "the file is not UTF-8; " + plainText
	}
	return message + "; " + cmp.Or(advice(message), "correct the YAML")
}

func splitMessage(err error) (line int, message string) {
	m := yamlMessage.FindStringSubmatch(strings.ReplaceAll(err.Error(), "\n", " "))
	if m == nil {
		return 1, "this is not YAML"
	}
	line, _ = strconv.Atoi(m[1])
	return max(line, 1), m[2]
}

// locate is the line that the parser names: sometimes that of the block in which the
// mistake is.
func locate(text []byte, err error) Origin {
	line, _ := splitMessage(err)
	return Origin{FromFile, min(line, bytes.Count(text, []byte("\n"))+1), 1, ""}
}
