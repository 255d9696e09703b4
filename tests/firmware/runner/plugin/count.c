/*
 * A QEMU plugin that counts executed instructions between two marker functions.
 *
 *   -plugin count.so,begin=ADDRESS,end=ADDRESS,step=ENCODING,out=FILE
 *
 * FILE gets one line for each region in order of execution: how many instructions it took, then, for each step marked in
 * it, how many came before. A step is marked by the instruction ENCODING, which does nothing and which no compiler
 * emits; it counts as one. With profile=FILE as well, that
 * file gets "REGION ADDRESS COUNT" for every instruction executed inside a region.
 *
 * Distributions ship the emulator without the plugin header, so the few functions used are declared here (interface
 * version 1). Regions do not nest; the machine has one processor.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef uint64_t plugin_id;
struct tb;
struct insn;
enum { CALLBACK_NO_REGISTERS = 0 };
enum { INLINE_ADD_U64 = 0 };

typedef void tb_translated(plugin_id, struct tb *);
typedef void insn_executed(unsigned int vcpu, void *data);
typedef void ended(plugin_id, void *data);

void qemu_plugin_register_vcpu_tb_trans_cb(plugin_id, tb_translated *);
void qemu_plugin_register_vcpu_insn_exec_cb(struct insn *, insn_executed *, int flags, void *data);
void qemu_plugin_register_vcpu_insn_exec_inline(struct insn *, int operation, void *counter, uint64_t addend);
void qemu_plugin_register_atexit_cb(plugin_id, ended *, void *data);
size_t qemu_plugin_tb_n_insns(const struct tb *);
struct insn *qemu_plugin_tb_get_insn(const struct tb *, size_t index);
uint64_t qemu_plugin_insn_vaddr(const struct insn *);
const void *qemu_plugin_insn_data(const struct insn *);
size_t qemu_plugin_insn_size(const struct insn *);

__attribute__((visibility("default"))) int qemu_plugin_version = 1;

/* One counter an instruction address, found again when a block is translated anew. */
struct place {
    uint64_t address;
    uint64_t executed;
};

enum { PLACES = 1 << 18, STEPS = 256 };

static uint64_t begin_address, end_address, step_encoding;
static uint64_t steps[STEPS];
static size_t step_count;
static uint64_t executed, executed_at_begin;
static unsigned region;
static FILE *out, *profile;
static struct place places[PLACES];

static struct place *place_of(uint64_t address)
{
    uint64_t slot = (address >> 1) * UINT64_C(0x9e3779b97f4a7c15) >> 46;
    while (places[slot].address != 0 && places[slot].address != address)
        slot = (slot + 1) % PLACES;
    places[slot].address = address;
    return &places[slot];
}

static void begin(unsigned int vcpu, void *data)
{
    (void)vcpu, (void)data;
    if (profile)
        for (size_t i = 0; i < PLACES; i++)
            places[i].executed = 0;
    executed_at_begin = executed;
    step_count = 0;
}

static void step(unsigned int vcpu, void *data)
{
    (void)vcpu, (void)data;
    if (step_count < STEPS)
        steps[step_count++] = executed - executed_at_begin;
}

static void end(unsigned int vcpu, void *data)
{
    (void)vcpu, (void)data;
    fprintf(out, "%" PRIu64, executed - executed_at_begin);
    for (size_t i = 0; i < step_count; i++)
        fprintf(out, " %" PRIu64, steps[i]);
    fputc('\n', out);
    if (profile)
        for (size_t i = 0; i < PLACES; i++)
            if (places[i].executed != 0)
                fprintf(profile, "%u 0x%" PRIx64 " %" PRIu64 "\n", region, places[i].address, places[i].executed);
    region++;
}

/* The last instruction of a page may come with bytes of the next one, so only as many as the encoding has are compared. */
static bool is_step(const struct insn *insn)
{
    uint32_t encoding = 0;
    size_t size = qemu_plugin_insn_size(insn);
    size_t wanted = step_encoding > 0xffff ? 4 : 2;
    if (size < wanted)
        return false;
    memcpy(&encoding, qemu_plugin_insn_data(insn), wanted);
    return encoding == step_encoding;
}

static void translated(plugin_id id, struct tb *tb)
{
    (void)id;
    size_t count = qemu_plugin_tb_n_insns(tb);
    for (size_t i = 0; i < count; i++) {
        struct insn *insn = qemu_plugin_tb_get_insn(tb, i);
        uint64_t address = qemu_plugin_insn_vaddr(insn);
        qemu_plugin_register_vcpu_insn_exec_inline(insn, INLINE_ADD_U64, &executed, 1);
        if (profile)
            qemu_plugin_register_vcpu_insn_exec_inline(insn, INLINE_ADD_U64, &place_of(address)->executed, 1);
        if (address == begin_address)
            qemu_plugin_register_vcpu_insn_exec_cb(insn, begin, CALLBACK_NO_REGISTERS, NULL);
        if (is_step(insn))
            qemu_plugin_register_vcpu_insn_exec_cb(insn, step, CALLBACK_NO_REGISTERS, NULL);
        if (address == end_address)
            qemu_plugin_register_vcpu_insn_exec_cb(insn, end, CALLBACK_NO_REGISTERS, NULL);
    }
}

static void close_files(plugin_id id, void *data)
{
    (void)id, (void)data;
    fclose(out);
    if (profile)
        fclose(profile);
}

__attribute__((visibility("default"))) int
qemu_plugin_install(plugin_id id, const void *info, int argc, char **argv)
{
    (void)info;
    for (int i = 0; i < argc; i++) {
        char *value = strchr(argv[i], '=');
        if (!value)
            return -1;
        *value++ = 0;
        if (strcmp(argv[i], "begin") == 0)
            begin_address = strtoull(value, NULL, 0);
        else if (strcmp(argv[i], "end") == 0)
            end_address = strtoull(value, NULL, 0);
        else if (strcmp(argv[i], "step") == 0)
            step_encoding = strtoull(value, NULL, 0);
        else if (strcmp(argv[i], "out") == 0)
            out = fopen(value, "w");
        else if (strcmp(argv[i], "profile") == 0)
            profile = fopen(value, "w");
        else
            return -1;
    }
    if (!out)
        return -1;
    qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
    qemu_plugin_register_atexit_cb(id, close_files, NULL);
    return 0;
}
