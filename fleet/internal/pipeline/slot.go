package pipeline

import "strings"

const (
	slots        = 16384 // of a Redis Cluster
	clusterLines = 16
)

// slot is the slot of a key in a Redis Cluster: the CRC-16 (XMODEM) of the key, or of what stands in its first
// braces where that is not empty.
func slot(key string) int {
	if _, rest, ok := strings.Cut(key, "{"); ok {
		if tag, _, ok := strings.Cut(rest, "}"); ok && tag != "" {
			key = tag
		}
	}
	var crc uint16
	for i := range len(key) {
		crc ^= uint16(key[i]) << 8
		for range 8 {
			carry := crc >> 15
			crc = crc<<1 ^ carry*0x1021
		}
	}
	return int(crc) % slots
}
