"""The end of listening, without a reset for anyone who has connected."""

import ctypes
import socket
import struct
import sys

_SO_ATTACH_FILTER = 26
# A program of the Berkeley Packet Filter (McCanne and Jacobson 1993), which Linux runs on what
# comes to a socket: drop segments that have SYN and not ACK, let all others pass.
_LOAD_BYTE, _AND, _JUMP_IF_EQUAL, _RETURN = 0x30, 0x54, 0x15, 0x06
_FLAGS, _SYN, _SYN_AND_ACK = 13, 0x02, 0x12  # of the segment's head the byte with its flags
_PROGRAM = (
    (_LOAD_BYTE, 0, 0, _FLAGS),
    (_AND, 0, 0, _SYN_AND_ACK),
    (_JUMP_IF_EQUAL, 0, 1, _SYN),
    (_RETURN, 0, 0, 0),
    (_RETURN, 0, 0, 0xFFFFFFFF),
)


def refuse_more(listener: socket.socket) -> None:
    """Let nobody new connect, while those who have begun to still can.

    A listening socket that is closed resets the connections that nobody has accepted yet, and with
    them requests that may be there already. Who comes now is not answered, tries again a second
    later, and is told that nobody listens. Where there is no such filter, nothing is done.
    """
    if sys.platform != "linux":
        return
    code = b"".join(struct.pack("HBBI", *instruction) for instruction in _PROGRAM)
    held = ctypes.create_string_buffer(code, len(code))
    program = struct.pack("HL", len(_PROGRAM), ctypes.addressof(held))
    try:
        listener.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, program)
    except OSError:  # a sandbox may not have it
        return
