// Package powerloss makes the files that a loss of power can leave, out of a record of
// the system calls of a process that wrote them: what was written and not yet synced is
// dropped, torn or reordered, each file by itself.
//
// The record is strace's. [Flags] are how to make it, [ReadTrace] reads it,
// [NewHistory] makes the history of a directory's files of it, [History.Next] that of the process
// after it, [Moment.Advance] goes to where one is cut, and [Moment.Write] writes one of the images
// that are possible then. [NewPublication] is the history of a directory that is filled under
// another name and then gets its own.
//
// # What it shows
//
// A call that had returned before a sync of its file began is durable once that sync has
// returned. What a sync was about that failed never is, whatever is synced later: the kernel
// may have dropped it. Anything that is not durable may be lost if it had begun before the cut:
//
//   - Of each unit of a file (512 or 4,096 bytes), any of the versions that it had since the last
//     sync may be there, whatever the others hold. So writes are dropped, torn at
//     units, and reordered. A unit itself is never torn: that is what disks promise of a
//     sector, and what a store must rely on that marks its commits in one.
//   - The length of a file may be the old one.
//   - Names that were made, linked, renamed or removed since the last sync of the
//     directory may not be, from some point on: file systems keep their order. A sync of
//     the file does not keep its name, as it does on some file systems.
//
// What a process has told others is in the record too, as lines that it wrote to a pipe.
// Since strace writes down the return of a sync before the process goes on, each line
// that rests on a sync stands behind it.
//
// # What it does not show
//
// A disk that loses what it has confirmed, a unit that holds neither version, damage of what
// was not being written, and errors of the kernel or of the file system. Only writes by
// pwrite64, those by write to what is open to be written alone, and sizes by ftruncate are
// known, a smaller one if nothing is changed until it is synced: any other way to change a file
// that strace was told to record is an error. A map that is written to is not seen: bbolt's maps are
// read-only.
package powerloss
