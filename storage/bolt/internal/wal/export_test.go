package wal

// SectorCRC returns the checksum of a sector of a commit.
func SectorCRC(id ID, at int64, s []byte) uint32 { return new(sectorCovered).crc(id, at, s) }
