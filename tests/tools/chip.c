/* A GPIO chip of four lines, played for one process (LD_PRELOAD) as linux/gpio.h says that the kernel does.
 *
 * Its structures and numbers are the header's own, so what reads them here was laid out rightly there. The lines live
 * in the folder $CHIP, as the tool's simulated chip has them: a file per line, "in 0", "out 1" or "in z"; a file
 * `keeps` where an output stays driven when nobody holds it. A descriptor of a line is one of its file, locked: it
 * ends with the process, as the kernel's does. /dev/gpiochip0 must be listed too, so /dev is $CHIP/dev here.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/gpio.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define NAME "/dev/gpiochip0"
#define LINES 4
static int chip_fd = -1, line_fd = -1;
static __u64 line_flags;

static int fails(int number) { errno = number; return -1; }

static void path_of(char *path, const char *name) { snprintf(path, 300, "%s/%s", getenv("CHIP"), name); }

static int keeps(void) { char path[300]; path_of(path, "keeps"); return access(path, F_OK) == 0; }

static void say(int fd, const char *direction, const char *level) {
    char text[16];
    int length = snprintf(text, sizeof text, "%s %s\n", direction, level);
    if (ftruncate(fd, 0) || pwrite(fd, text, length, 0) != length) abort();
}

static void read_line(int fd, char *direction, char *level) {
    char text[16] = {0};
    if (pread(fd, text, 15, 0) < 0 || sscanf(text, "%7s %7s", direction, level) != 2) abort();
}

static void drive(int fd, __u64 active, __u64 flags) {
    say(fd, "out", !active == !(flags & GPIO_V2_LINE_FLAG_ACTIVE_LOW) ? "0" : "1");
}

static int get_line(struct gpio_v2_line_request *asked) {
    char path[300], number[12], direction[8], level[8];
    __u64 flags = asked->config.flags;
    __u64 both = GPIO_V2_LINE_FLAG_INPUT | GPIO_V2_LINE_FLAG_OUTPUT;
    if (asked->num_lines != 1 || asked->offsets[0] >= LINES || strcmp(asked->consumer, "rea-edge")) return fails(EINVAL);
    if ((flags & both) == both || (!(flags & both) && flags & ~GPIO_V2_LINE_FLAG_ACTIVE_LOW)) return fails(EINVAL);
    for (int at = 0; at < 5; at++) if (asked->padding[at] || asked->config.padding[at]) return fails(EINVAL);
    snprintf(number, sizeof number, "%u", asked->offsets[0]);
    path_of(path, number);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0) return fails(EINVAL);
    if (flock(fd, LOCK_EX | LOCK_NB)) { close(fd); return fails(EBUSY); }
    read_line(fd, direction, level);
    if (!strcmp(direction, "out") && !keeps()) say(fd, "in", "z");
    if (flags & GPIO_V2_LINE_FLAG_OUTPUT) {
        struct gpio_v2_line_config_attribute *first = &asked->config.attrs[0];
        int valued = asked->config.num_attrs == 1 && first->attr.id == GPIO_V2_LINE_ATTR_ID_OUTPUT_VALUES;
        drive(fd, valued ? first->attr.values & first->mask & 1 : 0, flags);
    }
    line_fd = asked->fd = fd;
    line_flags = flags;
    return 0;
}

static int values(unsigned long what, struct gpio_v2_line_values *given) {
    char direction[8], level[8];
    if (!(given->mask & 1)) return fails(EINVAL);
    read_line(line_fd, direction, level);
    if (what == GPIO_V2_LINE_SET_VALUES_IOCTL) {
        if (!(line_flags & GPIO_V2_LINE_FLAG_OUTPUT)) return fails(EPERM);
        drive(line_fd, given->bits & 1, line_flags);
        return 0;
    }
    int high = *level == 'z' ? !!(line_flags & GPIO_V2_LINE_FLAG_BIAS_PULL_UP) : *level == '1';
    given->bits = high != !!(line_flags & GPIO_V2_LINE_FLAG_ACTIVE_LOW);
    return 0;
}

int ioctl(int fd, unsigned long what, ...) {
    va_list rest;
    va_start(rest, what);
    void *block = va_arg(rest, void *);
    va_end(rest);
    what &= 0xffffffff;
    if (fd == line_fd && fd >= 0) {
        if (what == GPIO_V2_LINE_GET_VALUES_IOCTL || what == GPIO_V2_LINE_SET_VALUES_IOCTL) return values(what, block);
        return fails(ENOTTY);
    }
    if (fd != chip_fd) return ((int (*)(int, unsigned long, ...))dlsym(RTLD_NEXT, "ioctl"))(fd, what, block);
    if (what == GPIO_GET_CHIPINFO_IOCTL) {
        struct gpiochip_info *info = block;
        memset(info, 0, sizeof *info);
        strcpy(info->name, "gpiochip0");
        strcpy(info->label, "pinctrl-played");
        info->lines = LINES;
        return 0;
    }
    if (what == GPIO_V2_GET_LINEINFO_IOCTL) {
        struct gpio_v2_line_info *info = block;
        if (info->offset >= LINES) return fails(EINVAL);
        strcpy(info->consumer, "somebody-else");
        return 0;
    }
    return what == GPIO_V2_GET_LINE_IOCTL ? get_line(block) : fails(ENOTTY);
}

static int opened(const char *path, int flags, mode_t mode, const char *real) {
    char folder[300];
    int fd;
    path_of(folder, "0");
    if (strncmp(path, "/dev/gpiochip", 13)) return ((int (*)(const char *, int, mode_t))dlsym(RTLD_NEXT, real))(path, flags, mode);
    if (strcmp(path, NAME)) return fails(ENOENT);
    path_of(folder, "dev/gpiochip0");
    fd = ((int (*)(const char *, int, mode_t))dlsym(RTLD_NEXT, real))(folder, flags, mode);
    return fd < 0 ? fd : (chip_fd = fd);
}

int open64(const char *path, int flags, ...) {
    va_list rest;
    va_start(rest, flags);
    mode_t mode = flags & O_CREAT ? va_arg(rest, mode_t) : 0;
    va_end(rest);
    return opened(path, flags, mode, "open64");
}

int open(const char *path, int flags, ...) {
    va_list rest;
    va_start(rest, flags);
    mode_t mode = flags & O_CREAT ? va_arg(rest, mode_t) : 0;
    va_end(rest);
    return opened(path, flags, mode, "open");
}

DIR *opendir(const char *path) {
    char folder[300];
    path_of(folder, "dev");
    return ((DIR * (*)(const char *)) dlsym(RTLD_NEXT, "opendir"))(strcmp(path, "/dev") ? path : folder);
}
