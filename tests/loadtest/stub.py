"""A tiny HTTP server in a process of its own, one request at a time: `python stub.py [STATUS] [MILLISECONDS]`.

Prints its port, then answers every request with the status after so many milliseconds.
"""

from __future__ import annotations

import asyncio
import sys


async def main(status: str, seconds: float) -> None:
    one_at_a_time = asyncio.Lock()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while head := await reader.readuntil(b"\r\n\r\n"):
            for line in head.split(b"\r\n"):
                name, _, value = line.partition(b":")
                if name.lower() == b"content-length":
                    await reader.readexactly(int(value))
            async with one_at_a_time:
                await asyncio.sleep(seconds)
            writer.write(f"HTTP/1.1 {status} X\r\nRetry-After: 1\r\nContent-Length: 2\r\n\r\n{{}}".encode())

    async def quietly(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await serve(reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(quietly, "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], float(sys.argv[2]) / 1000))
