"""What a status of sudoku-batch says beyond its code: the google.rpc details that come with it, decoded."""

from __future__ import annotations

import grpc
from google.protobuf.message import Message
from google.rpc import error_details_pb2
from grpc_status import rpc_status

TYPES = {kind.DESCRIPTOR.full_name: kind for kind in vars(error_details_pb2).values() if isinstance(kind, type) and issubclass(kind, Message)}


def details(error: grpc.RpcError) -> dict[str, Message]:
    """The details by their types' names, such as "ErrorInfo"; none with an error of the transport."""
    status = rpc_status.from_call(error)
    decoded = {}
    for packed in status.details if status else ():
        if kind := TYPES.get(packed.TypeName()):
            decoded[kind.DESCRIPTOR.name] = kind.FromString(packed.value)
    return decoded


def reason(error: grpc.RpcError) -> str:
    """The service's own word for an error; "" for an error of the transport."""
    info = details(error).get("ErrorInfo")
    return info.reason if info else ""


def retry_seconds(error: grpc.RpcError) -> float | None:
    """After how long the service wants to be asked again; None where it says nothing about that."""
    retry = details(error).get("RetryInfo")
    return retry.retry_delay.ToTimedelta().total_seconds() if retry else None


def describe(error: grpc.RpcError) -> str:
    """An error in one line: code, message and reason."""
    why = reason(error)
    return " ".join(f"{error.code().name}: {error.details()}".split()) + (f" ({why})" if why else "")
