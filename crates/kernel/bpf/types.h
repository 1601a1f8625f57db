/* SPDX-License-Identifier: MIT OR GPL-2.0-only
 *
 * Integers with a size, for eBPF and for user space.
 */
#ifndef FS_TYPES_H
#define FS_TYPES_H

typedef unsigned char __u8;
typedef unsigned short __u16;
typedef unsigned int __u32;
typedef unsigned long long __u64;
typedef signed char __s8;
typedef signed short __s16;
typedef int __s32;
typedef long long __s64;

/* Names that the helpers' prototypes use. */
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u64 __be64;
typedef __u16 __le16;
typedef __u32 __wsum;

#ifndef __cplusplus
#define bool _Bool
#define true 1
#define false 0
#endif

enum {
	BPF_ANY = 0,
};

/* Map types of the kernel (enum bpf_map_type). */
enum {
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_LRU_HASH = 9,
	BPF_MAP_TYPE_SK_STORAGE = 24,
	BPF_MAP_TYPE_RINGBUF = 27,
};
#define BPF_F_NO_PREALLOC 1
#define BPF_SK_STORAGE_GET_F_CREATE 1

#endif
