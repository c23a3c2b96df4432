package runtime

import (
	"encoding/binary"
	"unsafe"

	"golang.org/x/sys/unix"
)

// siginfoStatus is si_status of a SIGCHLD siginfo, which x/sys leaves in the
// union behind the header: pid, uid, status, each a word of four bytes.
func siginfoStatus(info *unix.Siginfo) int32 {
	raw := (*[unsafe.Sizeof(*info)]byte)(unsafe.Pointer(info))
	const header = 16 // si_signo, si_errno, si_code, padding on 64-bit
	return int32(binary.NativeEndian.Uint32(raw[header+8:]))
}
