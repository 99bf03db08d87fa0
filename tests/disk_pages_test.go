package tests

import (
	"encoding/binary"
	"os"
	"testing"
)

// region is a part of a file that holds one kind of thing.
type region struct {
	file, kind string
	at, size   int
}

// pageMap finds out what each byte of a bbolt file is, without bbolt. For what it reads
// see the layout of bbolt's pages:
//
//	page    id 8, flags 2, count 2, overflow 4, elements
//	branch  elements { pos 4, key length 4, page 8 }, keys
//	leaf    elements { flags 4, pos 4, key length 4, value length 4 }, keys and values
//	bucket  a value { root page 8, sequence 8 }, and a leaf page if the root page is 0
//	meta    at 16: magic 4, version 4, page size 4, flags 4, root 8, sequence 8, freelist 8, page count 8, transaction 8, sum 8
type pageMap struct {
	file     string
	content  []byte
	pageSize int
	regions  []region
}

const (
	pageHeader  = 16
	branchFlag  = 0x01
	bucketFlag  = 0x01
	metaEnd     = 80
	metaRoot    = 32
	metaFree    = 48
	metaTx      = 64
	elementSize = 16
)

// mapPages returns all regions of a file.
func mapPages(t testing.TB, path, file string) []region {
	t.Helper()
	m := &pageMap{file: file, content: must(os.ReadFile(path))(t), pageSize: os.Getpagesize()}
	newer := 0
	for page := range 2 {
		at := page * m.pageSize
		m.add("meta", at+pageHeader, metaEnd-pageHeader)
		m.add("unused", at+metaEnd, m.pageSize-metaEnd)
		if m.u64(at+metaTx) > m.u64(newer+metaTx) {
			newer = at
		}
	}
	m.freelist(m.u64(newer + metaFree))
	m.tree(m.u64(newer+metaRoot), "buckets")
	return m.regions
}

func (m *pageMap) u16(at int) int { return int(binary.NativeEndian.Uint16(m.content[at:])) }
func (m *pageMap) u32(at int) int { return int(binary.NativeEndian.Uint32(m.content[at:])) }
func (m *pageMap) u64(at int) int { return int(binary.NativeEndian.Uint64(m.content[at:])) }

func (m *pageMap) add(kind string, at, size int) {
	if size > 0 {
		m.regions = append(m.regions, region{m.file, kind, at, size})
	}
}

// freelist maps the list of free pages, and those pages.
func (m *pageMap) freelist(id int) {
	at := id * m.pageSize
	count := m.u16(at + 10)
	end := at + pageHeader + 8*count
	m.add("freelist", at, end-at)
	m.add("unused", end, at+m.pageSize*(1+m.u32(at+12))-end)
	for i := range count {
		free := m.u64(at + pageHeader + 8*i)
		m.add("unused", free*m.pageSize, m.pageSize)
	}
}

// tree maps a page and those below it.
func (m *pageMap) tree(id int, bucket string) {
	at := id * m.pageSize
	end := m.elements(at, bucket)
	m.add("unused", end, at+m.pageSize*(1+m.u32(at+12))-end)
}

// elements maps what is on a page, or in a bucket that is a value, and returns its end.
func (m *pageMap) elements(at int, bucket string) (end int) {
	count := m.u16(at + 10)
	end = at + pageHeader + count*elementSize
	if m.u16(at+8)&branchFlag != 0 {
		m.add(bucket+"/branch", at, end-at)
		for i := range count {
			e := at + pageHeader + i*elementSize
			key, size := e+m.u32(e), m.u32(e+4)
			m.add(bucket+"/branch", key, size)
			end = max(end, key+size)
			m.tree(m.u64(e+8), bucket)
		}
		return end
	}
	m.add(bucket+"/leaf", at, end-at)
	for i := range count {
		e := at + pageHeader + i*elementSize
		key, keySize, size := e+m.u32(e+4), m.u32(e+8), m.u32(e+12)
		value := key + keySize
		end = max(end, value+size)
		name := string(m.content[key:value])
		kind := bucket
		if bucket == "header" { // its values are all different
			kind += "." + name
		}
		m.add(kind+"/key", key, keySize)
		switch {
		case m.u32(e)&bucketFlag == 0:
			m.add(kind+"/value", value, size)
		case m.u64(value) != 0:
			m.add("buckets/bucket", value, size)
			m.tree(m.u64(value), name)
		default:
			m.add("buckets/bucket", value, 16)
			m.elements(value+16, name)
		}
	}
	return end
}
