"""Memory and devices: the processor's, as the library tells of them."""
import ctypes
import enum

from . import _abi
from ._abi import Owned, api, make
from ._missing import Named


class OrtAllocatorType(enum.IntEnum):
    INVALID = -1
    ORT_DEVICE_ALLOCATOR = 0
    ORT_ARENA_ALLOCATOR = 1


class OrtMemType(enum.IntEnum):
    CPU_INPUT = -2
    CPU_OUTPUT = -1
    CPU = -1
    DEFAULT = 0


class OrtDeviceMemoryType(enum.IntEnum):
    DEFAULT = 0
    HOST_ACCESSIBLE = 5


class OrtMemoryInfoDeviceType(enum.IntEnum):
    CPU = 0
    GPU = 1
    FPGA = 2
    NPU = 3


class OrtHardwareDeviceType(enum.IntEnum):
    CPU = 0
    GPU = 1
    NPU = 2


class OrtDeviceVendorId(enum.IntEnum):
    NONE = 0
    AMD = 0x1002
    NVIDIA = 0x10DE
    ARM = 0x13B5
    MICROSOFT = 0x1414
    HUAWEI = 0x19E5
    QUALCOMM = 0x5143
    INTEL = 0x8086


class OrtExecutionProviderDevicePolicy(enum.IntEnum):
    DEFAULT = 0
    PREFER_CPU = 1
    PREFER_NPU = 2
    PREFER_GPU = 3
    MAX_PERFORMANCE = 4
    MAX_EFFICIENCY = 5
    MIN_OVERALL_POWER = 6


class ArenaExtendStrategy(enum.IntEnum):
    kNextPowerOfTwo = 0
    kSameAsRequested = 1


def _number(function, address, kind=ctypes.c_int):
    out = kind()
    function(address, ctypes.byref(out))
    return out.value


class OrtMemoryInfo(Named):
    """Where memory lies."""

    def __init__(self, name, allocator_type, device_id, mem_type):
        self._owned = Owned(make(api.CreateMemoryInfo, name.encode(), int(allocator_type), device_id, int(mem_type)),
                            api.ReleaseMemoryInfo)
        self._address = self._owned.address

    @classmethod
    def _of(cls, address):
        """One that belongs to the library."""
        made = cls.__new__(cls)
        made._address = address
        return made

    @classmethod
    def create_v2(cls, name, device_type, vendor_id, device_id, device_mem_type, alignment, allocator_type):
        made = cls.__new__(cls)
        made._owned = Owned(make(api.CreateMemoryInfo_V2, name.encode(), int(device_type), int(vendor_id), device_id,
                                 int(device_mem_type), alignment, int(allocator_type)), api.ReleaseMemoryInfo)
        made._address = made._owned.address
        return made

    name = property(lambda self: ctypes.string_at(make(api.MemoryInfoGetName, self._address)).decode())
    device_id = property(lambda self: _number(api.MemoryInfoGetId, self._address))
    mem_type = property(lambda self: OrtMemType(_number(api.MemoryInfoGetMemType, self._address)))
    allocator_type = property(lambda self: OrtAllocatorType(_number(api.MemoryInfoGetType, self._address)))
    device_mem_type = property(lambda self: OrtDeviceMemoryType(api.MemoryInfoGetDeviceMemType(self._address)))
    device_vendor_id = property(lambda self: api.MemoryInfoGetVendorId(self._address))


class OrtArenaCfg(Named):
    """How an arena grows: kept, since the library grows its memory by itself."""
    _KEYS = ("max_mem", "arena_extend_strategy", "initial_chunk_size_bytes", "max_dead_bytes_per_chunk",
             "initial_growth_chunk_size_bytes", "max_power_of_two_extend_bytes")

    def __init__(self, *values):
        given = values[0] if len(values) == 1 and isinstance(values[0], dict) else dict(zip(self._KEYS, values))
        if len(values) not in (1, 4) or set(given) - set(self._KEYS):
            raise ValueError(f"Invalid OrtArenaCfg option: a dict with keys of {', '.join(self._KEYS)}, or the first four")
        for key in self._KEYS:
            setattr(self, key, given.get(key, 0 if key == "max_mem" else -1))
        names, sizes = [key.encode() for key in given], [value for value in given.values()]
        self._owned = Owned(make(api.CreateArenaCfgV2, (ctypes.c_char_p * len(names))(*names),
                                 (ctypes.c_size_t * len(sizes))(*sizes), len(names)), api.ReleaseArenaCfg)


def create_and_register_allocator(memory_info, arena_cfg=None):
    api.CreateAndRegisterAllocator(_abi.env, memory_info._address, arena_cfg and arena_cfg._owned.address)


def create_and_register_allocator_v2(provider_type, memory_info, options, arena_cfg=None):
    keys, values = ((ctypes.c_char_p * len(options))(*(str(t).encode() for t in texts))
                    for texts in (options.keys(), options.values()))
    api.CreateAndRegisterAllocatorV2(_abi.env, provider_type.encode(), memory_info._address,
                                     arena_cfg and arena_cfg._owned.address, keys, values, len(options))


def _pairs(address):
    keys, values, count = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_size_t()
    if address:
        api.GetKeyValuePairs(address, ctypes.byref(keys), ctypes.byref(values), ctypes.byref(count))
    texts = [(ctypes.c_char_p * count.value).from_address(at.value) if count.value else () for at in (keys, values)]
    return {key.decode(): value.decode() for key, value in zip(*texts)}


class OrtHardwareDevice(Named):
    """A device of this machine."""

    def __init__(self, address):
        self.type = OrtHardwareDeviceType(api.HardwareDevice_Type(address))
        self.vendor, self.vendor_id = api.HardwareDevice_Vendor(address).decode(), api.HardwareDevice_VendorId(address)
        self.device_id, self.metadata = api.HardwareDevice_DeviceId(address), _pairs(api.HardwareDevice_Metadata(address))


class OrtEpDevice(Named):
    """A provider and the device that it runs on."""

    def __init__(self, address):
        self._address = address
        self.ep_name, self.ep_vendor = api.EpDevice_EpName(address).decode(), api.EpDevice_EpVendor(address).decode()
        self.ep_metadata, self.ep_options = _pairs(api.EpDevice_EpMetadata(address)), _pairs(api.EpDevice_EpOptions(address))
        self.device = OrtHardwareDevice(api.EpDevice_Device(address))

    def memory_info(self, kind):
        info = api.EpDevice_MemoryInfo(self._address, int(kind))
        return info and OrtMemoryInfo._of(info)


def get_ep_devices():
    devices, count = ctypes.c_void_p(), ctypes.c_size_t()
    api.GetEpDevices(_abi.env, ctypes.byref(devices), ctypes.byref(count))
    return [OrtEpDevice(address) for address in (ctypes.c_void_p * count.value).from_address(devices.value)]


def get_hardware_devices():
    count = ctypes.c_size_t()
    api.GetNumHardwareDevices(_abi.env, ctypes.byref(count))
    devices = (ctypes.c_void_p * count.value)()
    api.GetHardwareDevices(_abi.env, devices, count.value)
    return [OrtHardwareDevice(address) for address in devices]


def listed(function, session, count, kind):
    """What the library tells of each input or output of a session."""
    found = (ctypes.c_void_p * max(count, 1))()
    function(session, found, count)
    return [kind(address) for address in found[:count]]
