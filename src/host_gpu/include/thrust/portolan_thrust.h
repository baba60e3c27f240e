#pragma once

// The commonly used part of Thrust, on the host: the standard library's algorithms over device memory.

#include <algorithm>
#include <functional>
#include <initializer_list>
#include <iostream>  // Thrust brings it, and programs count on that
#include <iterator>
#include <memory>
#include <numeric>
#include <random>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "cub/types.cuh"
#include "cuda_runtime.h"

#define THRUST_VERSION 200500

namespace thrust {

template <typename T>
class device_ptr {
 public:
  using value_type = std::remove_cv_t<T>;
  using element_type = T;
  using difference_type = std::ptrdiff_t;
  using reference = T&;
  using pointer = device_ptr;
  using iterator_category = std::random_access_iterator_tag;
  device_ptr() = default;
  explicit device_ptr(T* p) : p_(p) {}
  template <typename U, typename = std::enable_if_t<std::is_convertible_v<U*, T*>>>
  device_ptr(const device_ptr<U>& other) : p_(other.get()) {}
  T* get() const { return p_; }
  T& operator*() const { return *p_; }
  T& operator[](difference_type i) const { return p_[i]; }
  T* operator->() const { return p_; }
  device_ptr operator+(difference_type i) const { return device_ptr(p_ + i); }
  friend device_ptr operator+(difference_type i, device_ptr p) { return p + i; }
  device_ptr operator-(difference_type i) const { return device_ptr(p_ - i); }
  difference_type operator-(const device_ptr& other) const { return p_ - other.p_; }
  device_ptr& operator++() { return ++p_, *this; }
  device_ptr operator++(int) { return device_ptr(p_++); }
  device_ptr& operator--() { return --p_, *this; }
  device_ptr operator--(int) { return device_ptr(p_--); }
  device_ptr& operator+=(difference_type i) { return p_ += i, *this; }
  device_ptr& operator-=(difference_type i) { return p_ -= i, *this; }
  auto operator<=>(const device_ptr&) const = default;

 private:
  T* p_ = nullptr;
};
template <typename T>
device_ptr<T> device_pointer_cast(T* p) {
  return device_ptr<T>(p);
}
template <typename T>
device_ptr<T> device_pointer_cast(device_ptr<T> p) {
  return p;
}
template <typename T>
T* raw_pointer_cast(device_ptr<T> p) {
  return p.get();
}
template <typename T>
T* raw_pointer_cast(T* p) {
  return p;
}
template <typename T>
using device_reference = T&;

template <typename T>
struct device_allocator {
  using value_type = T;
  device_allocator() = default;
  template <typename U>
  device_allocator(const device_allocator<U>&) {}
  T* allocate(size_t count) {
    T* p = static_cast<T*>(portolan::gpu::Allocate(count * sizeof(T), portolan::gpu::MemoryKind::kDevice));
    if (p == nullptr) throw std::bad_alloc();
    return p;
  }
  void deallocate(T* p, size_t) { portolan::gpu::Free(p); }
  bool operator==(const device_allocator&) const { return true; }
};

template <typename T>
using host_vector = std::vector<T>;

template <typename T>
class device_vector {
 public:
  using value_type = T;
  using iterator = device_ptr<T>;
  using const_iterator = device_ptr<const T>;
  using pointer = device_ptr<T>;
  using reference = T&;
  using size_type = size_t;
  using difference_type = std::ptrdiff_t;
  device_vector() = default;
  explicit device_vector(size_t count) : data_(count) {}
  device_vector(size_t count, const T& value) : data_(count, value) {}
  device_vector(std::initializer_list<T> values) : data_(values) {}
  device_vector(const std::vector<T>& other) : data_(other.begin(), other.end()) {}
  template <typename Iterator, typename = typename std::iterator_traits<Iterator>::iterator_category>
  device_vector(Iterator begin, Iterator end) : data_(begin, end) {}
  device_vector& operator=(const std::vector<T>& other) { return data_.assign(other.begin(), other.end()), *this; }
  operator std::vector<T>() const {
    Observed();
    return std::vector<T>(data_.begin(), data_.end());
  }
  iterator begin() { return iterator(data_.data()); }
  iterator end() { return begin() + static_cast<difference_type>(size()); }
  const_iterator begin() const { return const_iterator(data_.data()); }
  const_iterator end() const { return begin() + static_cast<difference_type>(size()); }
  const_iterator cbegin() const { return begin(); }
  const_iterator cend() const { return end(); }
  pointer data() { return begin(); }
  const_iterator data() const { return begin(); }
  size_t size() const { return data_.size(); }
  size_t capacity() const { return data_.capacity(); }
  bool empty() const { return data_.empty(); }
  void resize(size_t count) { data_.resize(count); }
  void resize(size_t count, const T& value) { data_.resize(count, value); }
  void reserve(size_t count) { data_.reserve(count); }
  void clear() { data_.clear(); }
  void shrink_to_fit() { data_.shrink_to_fit(); }
  void push_back(const T& value) { data_.push_back(value); }
  void swap(device_vector& other) { data_.swap(other.data_); }
  template <typename Iterator>
  void assign(Iterator begin, Iterator end) {
    data_.assign(begin, end);
  }
  iterator erase(iterator first, iterator last) {
    const auto at = data_.begin() + (first - begin());
    data_.erase(at, at + (last - first));
    return first;
  }
  T& operator[](size_t i) { return data_[i]; }
  const T& operator[](size_t i) const { return data_[i]; }
  T& front() { return data_.front(); }
  T& back() { return data_.back(); }
  const T& back() const { return data_.back(); }

 private:
  void Observed() const {
    if (!data_.empty())
      portolan::gpu::Observe(data_.data(), data_.size() * sizeof(T), __builtin_FILE(), __builtin_LINE());
  }
  std::vector<T, device_allocator<T>> data_;
};

struct Policy {
  template <typename Stream>
  Policy on(Stream) const {
    return {};
  }
  template <typename Allocator>
  Policy operator()(Allocator&&) const {
    return {};
  }
};
inline constexpr Policy device{}, host{}, seq{};
using device_execution_policy = Policy;
namespace cuda {
inline constexpr Policy par{}, par_nosync{};
}
namespace hip {
inline constexpr Policy par{}, par_nosync{};
}
namespace system::cuda {
inline constexpr Policy par{};
}

using std::get;
using std::make_pair;
using std::make_tuple;
using std::pair;
using std::swap;
using std::tie;
using std::tuple;
using std::tuple_element;
using std::tuple_size;
#define PORTOLAN_FUNCTION_OBJECT(NAME) \
  template <typename T = void>         \
  struct NAME : std::NAME<T> {         \
    using result_type = T;             \
    using first_argument_type = T;     \
    using second_argument_type = T;    \
  };
PORTOLAN_FUNCTION_OBJECT(plus)
PORTOLAN_FUNCTION_OBJECT(minus)
PORTOLAN_FUNCTION_OBJECT(multiplies)
PORTOLAN_FUNCTION_OBJECT(divides)
PORTOLAN_FUNCTION_OBJECT(less)
PORTOLAN_FUNCTION_OBJECT(greater)
PORTOLAN_FUNCTION_OBJECT(less_equal)
PORTOLAN_FUNCTION_OBJECT(greater_equal)
PORTOLAN_FUNCTION_OBJECT(equal_to)
PORTOLAN_FUNCTION_OBJECT(not_equal_to)
PORTOLAN_FUNCTION_OBJECT(negate)
PORTOLAN_FUNCTION_OBJECT(logical_and)
PORTOLAN_FUNCTION_OBJECT(logical_or)
PORTOLAN_FUNCTION_OBJECT(logical_not)
PORTOLAN_FUNCTION_OBJECT(bit_and)
PORTOLAN_FUNCTION_OBJECT(bit_or)
PORTOLAN_FUNCTION_OBJECT(bit_xor)
#undef PORTOLAN_FUNCTION_OBJECT
template <typename T = void>
struct maximum {
  template <typename A>
  A operator()(const A& a, const A& b) const {
    return a < b ? b : a;
  }
};
template <typename T = void>
struct minimum {
  template <typename A>
  A operator()(const A& a, const A& b) const {
    return b < a ? b : a;
  }
};
template <typename T = void>
struct identity {
  template <typename A>
  A operator()(const A& a) const {
    return a;
  }
};
template <typename A, typename B, typename R>
struct binary_function {
  using first_argument_type = A;
  using second_argument_type = B;
  using result_type = R;
};
template <typename A, typename R>
struct unary_function {
  using argument_type = A;
  using result_type = R;
};

template <typename T, typename = void, typename = void, typename = void>
using counting_iterator = cub::CountingInputIterator<T>;
template <typename T>
counting_iterator<T> make_counting_iterator(T first) {
  return counting_iterator<T>(first);
}
template <typename T, typename = void, typename = void>
using constant_iterator = cub::ConstantInputIterator<T>;
template <typename T>
constant_iterator<T> make_constant_iterator(T value) {
  return constant_iterator<T>(value);
}
template <typename F, typename Iterator, typename R = std::invoke_result_t<F, decltype(*std::declval<Iterator>())>>
struct transform_iterator : cub::TransformInputIterator<std::remove_cvref_t<R>, F, Iterator> {
  transform_iterator(Iterator in, F op) : cub::TransformInputIterator<std::remove_cvref_t<R>, F, Iterator>(in, op) {}
};
template <typename F, typename Iterator>
auto make_transform_iterator(Iterator in, F op) {
  return transform_iterator<F, Iterator>(in, op);
}

using default_random_engine = std::minstd_rand;
using minstd_rand = std::minstd_rand;
template <typename T>
using uniform_real_distribution = std::uniform_real_distribution<T>;
template <typename T>
using uniform_int_distribution = std::uniform_int_distribution<T>;
template <typename T>
using normal_distribution = std::normal_distribution<T>;

// Each algorithm also takes a policy in front.
#define PORTOLAN_WITH_POLICY(NAME)                           \
  template <typename... Rest>                                \
  auto NAME(const Policy&, Rest&&... rest)->decltype(auto) { \
    return NAME(std::forward<Rest>(rest)...);                \
  }
template <typename I>
using Value = typename std::iterator_traits<I>::value_type;
template <typename T>
concept NoPolicy = !std::is_same_v<std::remove_cvref_t<T>, Policy>;

template <NoPolicy I, typename... C>
void sort(I first, I last, C... compare) {
  if constexpr (std::is_reference_v<decltype(*first)>) {
    std::sort(first, last, compare...);
  } else {  // tuples of references (zip_iterator) cannot be swapped
    std::vector<Value<I>> values(first, last);
    std::sort(values.begin(), values.end(), compare...);
    std::copy(values.begin(), values.end(), first);
  }
}
template <NoPolicy I, typename... C>
void stable_sort(I first, I last, C... compare) {
  std::stable_sort(first, last, compare...);
}
template <NoPolicy K, typename V, typename C>
void sort_by_key(K first, K last, V values, C compare) {
  const auto n = static_cast<size_t>(last - first);
  std::vector<size_t> order(n);
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return compare(first[a], first[b]); });
  std::vector<Value<K>> keys(first, last);
  std::vector<Value<V>> moved(values, values + static_cast<std::ptrdiff_t>(n));
  for (size_t i = 0; i < n; ++i) first[i] = keys[order[i]], values[i] = moved[order[i]];
}
template <NoPolicy K, typename V>
void sort_by_key(K first, K last, V values) {
  sort_by_key(first, last, values, std::less<>());
}
template <NoPolicy K, typename... A>
void stable_sort_by_key(K first, K last, A... rest) {
  sort_by_key(first, last, rest...);
}
template <NoPolicy I, typename T, typename F>
T reduce(I first, I last, T initial, F op) {
  for (; first != last; ++first) initial = op(initial, *first);
  return initial;
}
template <NoPolicy I, typename T>
T reduce(I first, I last, T initial) {
  return thrust::reduce(first, last, initial, std::plus<>());
}
template <NoPolicy I>
Value<I> reduce(I first, I last) {
  return thrust::reduce(first, last, Value<I>{});
}
template <NoPolicy I, typename F, typename T, typename G>
T transform_reduce(I first, I last, F transform, T initial, G op) {
  for (; first != last; ++first) initial = op(initial, transform(*first));
  return initial;
}
template <NoPolicy I, typename J, typename T>
T inner_product(I first, I last, J other, T initial) {
  return std::inner_product(first, last, other, initial);
}
template <NoPolicy K, typename V, typename KO, typename VO, typename E, typename F>
std::pair<KO, VO> reduce_by_key(K first, K last, V values, KO keys_out, VO values_out, E equal, F op) {
  while (first != last) {
    const Value<K> key = *first;
    Value<V> sum = *values;
    for (++first, ++values; first != last && equal(key, *first); ++first, ++values) sum = op(sum, *values);
    *keys_out = key, ++keys_out;
    *values_out = sum, ++values_out;
  }
  return {keys_out, values_out};
}
template <NoPolicy K, typename V, typename KO, typename VO>
std::pair<KO, VO> reduce_by_key(K first, K last, V values, KO keys_out, VO values_out) {
  return thrust::reduce_by_key(first, last, values, keys_out, values_out, std::equal_to<>(), std::plus<>());
}
template <NoPolicy I, typename O, typename... A>
O inclusive_scan(I first, I last, O out, A... op) {
  return std::partial_sum(first, last, out, op...);
}
template <NoPolicy I, typename O, typename T, typename F>
O exclusive_scan(I first, I last, O out, T initial, F op) {
  for (; first != last; ++first, ++out) {
    const Value<I> value = *first;
    *out = initial;
    initial = op(initial, value);
  }
  return out;
}
template <NoPolicy I, typename O, typename T>
O exclusive_scan(I first, I last, O out, T initial) {
  return thrust::exclusive_scan(first, last, out, initial, std::plus<>());
}
template <NoPolicy I, typename O>
O exclusive_scan(I first, I last, O out) {
  return thrust::exclusive_scan(first, last, out, Value<I>{});
}
template <NoPolicy I, typename T>
void fill(I first, I last, const T& value) {
  std::fill(first, last, value);
}
template <NoPolicy I, typename N, typename T>
I fill_n(I first, N count, const T& value) {
  return std::fill_n(first, count, value);
}
template <NoPolicy I>
void sequence(I first, I last) {
  std::iota(first, last, Value<I>{});
}
template <NoPolicy I, typename T>
void sequence(I first, I last, T start) {
  std::iota(first, last, static_cast<Value<I>>(start));
}
template <NoPolicy I, typename T>
void sequence(I first, I last, T start, T step) {
  for (T value = start; first != last; ++first, value += step) *first = value;
}
template <NoPolicy I, typename O>
O copy(I first, I last, O out) {
  if constexpr (requires { first.get(); }) {
    if (first != last) {
      portolan::gpu::Observe(first.get(), static_cast<size_t>(last - first) * sizeof(Value<I>), __builtin_FILE(),
                             __builtin_LINE());
    }
  }
  return std::copy(first, last, out);
}
template <NoPolicy I, typename N, typename O>
O copy_n(I first, N count, O out) {
  return thrust::copy(first, first + count, out);
}
template <NoPolicy I, typename O, typename F>
O copy_if(I first, I last, O out, F predicate) {
  return std::copy_if(first, last, out, predicate);
}
template <NoPolicy I, typename S, typename O, typename F>
O copy_if(I first, I last, S stencil, O out, F predicate) {
  for (; first != last; ++first, ++stencil) {
    if (predicate(*stencil)) *out = *first, ++out;
  }
  return out;
}
template <NoPolicy I, typename M, typename O>
O gather(I first, I last, M in, O out) {
  for (; first != last; ++first, ++out) *out = in[*first];
  return out;
}
template <NoPolicy I, typename M, typename O>
void scatter(I first, I last, M map, O out) {
  for (; first != last; ++first, ++map) out[*map] = *first;
}
template <NoPolicy I, typename... A>
I unique(I first, I last, A... equal) {
  return std::unique(first, last, equal...);
}
template <NoPolicy I, typename F>
I remove_if(I first, I last, F predicate) {
  return std::remove_if(first, last, predicate);
}
template <NoPolicy I, typename O, typename F>
O transform(I first, I last, O out, F op) {
  return std::transform(first, last, out, op);
}
template <NoPolicy I, typename J, typename O, typename F>
O transform(I first, I last, J other, O out, F op) {
  return std::transform(first, last, other, out, op);
}
template <NoPolicy I, typename F>
void for_each(I first, I last, F op) {
  std::for_each(first, last, op);
}
template <NoPolicy I, typename N, typename F>
void for_each_n(I first, N count, F op) {
  std::for_each_n(first, count, op);
}
template <NoPolicy I, typename F>
void generate(I first, I last, F make) {
  std::generate(first, last, make);
}
template <NoPolicy I, typename F>
void tabulate(I first, I last, F op) {
  for (std::ptrdiff_t i = 0; first != last; ++first, ++i) *first = op(i);
}
template <NoPolicy I, typename T>
std::ptrdiff_t count(I first, I last, const T& value) {
  return std::count(first, last, value);
}
template <NoPolicy I, typename F>
std::ptrdiff_t count_if(I first, I last, F predicate) {
  return std::count_if(first, last, predicate);
}
template <NoPolicy I, typename... A>
I max_element(I first, I last, A... less) {
  return std::max_element(first, last, less...);
}
template <NoPolicy I, typename... A>
I min_element(I first, I last, A... less) {
  return std::min_element(first, last, less...);
}
template <NoPolicy I, typename... A>
std::pair<I, I> minmax_element(I first, I last, A... less) {
  return std::minmax_element(first, last, less...);
}
template <NoPolicy I, typename J>
bool equal(I first, I last, J other) {
  return std::equal(first, last, other);
}
template <NoPolicy I, typename F>
bool all_of(I first, I last, F predicate) {
  return std::all_of(first, last, predicate);
}
template <NoPolicy I, typename F>
bool any_of(I first, I last, F predicate) {
  return std::any_of(first, last, predicate);
}
template <NoPolicy I, typename E>
void shuffle(I first, I last, E&& engine) {
  std::shuffle(first, last, engine);
}
template <NoPolicy I, typename T>
I find(I first, I last, const T& value) {
  return std::find(first, last, value);
}
template <NoPolicy I, typename T>
I lower_bound(I first, I last, const T& value) {
  return std::lower_bound(first, last, value);
}
template <NoPolicy I, typename T>
I upper_bound(I first, I last, const T& value) {
  return std::upper_bound(first, last, value);
}
template <NoPolicy I>
void reverse(I first, I last) {
  std::reverse(first, last);
}
template <NoPolicy I, typename T>
void replace(I first, I last, const T& old_value, const T& new_value) {
  std::replace(first, last, old_value, new_value);
}
template <NoPolicy I>
bool is_sorted(I first, I last) {
  return std::is_sorted(first, last);
}
template <NoPolicy I, typename O>
O adjacent_difference(I first, I last, O out) {
  return std::adjacent_difference(first, last, out);
}
template <NoPolicy I>
auto distance(I first, I last) {
  return last - first;
}
// clang-format 14 does not settle here.
// clang-format off
#define PORTOLAN_ALL(X) \
  X(sort) X(stable_sort) X(sort_by_key) X(stable_sort_by_key) X(reduce) X(transform_reduce) X(inner_product) \
  X(reduce_by_key) X(inclusive_scan) X(exclusive_scan) X(fill) X(fill_n) X(sequence) X(copy) X(copy_n) \
  X(copy_if) X(gather) X(scatter) X(unique) X(remove_if) X(transform) X(for_each) X(for_each_n) X(generate) \
  X(tabulate) X(count) X(count_if) X(max_element) X(min_element) X(minmax_element) X(equal) X(all_of) \
  X(any_of) X(shuffle) X(find) X(lower_bound) X(upper_bound) X(reverse) X(replace) X(is_sorted) \
  X(adjacent_difference)
// clang-format on
PORTOLAN_ALL(PORTOLAN_WITH_POLICY)
#undef PORTOLAN_ALL
#undef PORTOLAN_WITH_POLICY

}  // namespace thrust
